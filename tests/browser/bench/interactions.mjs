/** How long the page takes to answer what a person does, on a processor that is slowed to a quarter: from the key or click to the next paint. */
import { setTimeout as pause } from 'node:timers/promises'
import { SessionView } from '../support/session.mjs'

const RATE = 4
/** The page ignores decisions for 400 ms after a change. */
const GUARD_MS = 600

/** Gives `{ name, ms }` of each, the worst event of it. `session` is the address of one with a call that waits. */
export async function interactions(context, page, { app, waiting, other }) {
  const session = new SessionView(page)
  const cdp = await context.newCDPSession(page)
  const found = []
  const measure = async (name, act, done) => {
    await pause(GUARD_MS)
    await page.evaluate(() => {
      window.told = []
      window.watcher = new PerformanceObserver((list) => window.told.push(...list.getEntries().filter(({ interactionId }) => interactionId > 0).map(({ duration }) => duration)))
      window.watcher.observe({ type: 'event', durationThreshold: 16 })
    })
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: RATE })
    await act()
    await done?.()
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: 1 })
    // What takes one frame at most is not told.
    const ms = await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => {
      const left = window.watcher.takeRecords().filter(({ interactionId }) => interactionId > 0).map(({ duration }) => duration)
      window.watcher.disconnect()
      resolve(Math.max(16, ...window.told, ...left))
    }))))
    found.push({ name, ms })
  }
  const click = (locator) => async () => locator.click()
  const key = (keys) => () => page.keyboard.press(keys)

  await page.goto(waiting)
  await session.isReady()
  await session.card.waitFor()
  await page.waitForLoadState('networkidle')
  // Each part that is loaded when it is first needed is needed once before: its bytes are no work of the page.
  for (const round of ['first', 'again']) {
    if (round === 'again') found.length = 0
    await measure('a letter in the message field', async () => session.composer.press('x'))
    await session.composer.fill('')
    await measure('the palette', key('Control+K'), () => page.getByRole('option').first().waitFor())
    await measure('  a letter in it', key('s'))
    await measure('  and its end', key('Escape'), () => page.getByRole('option').first().waitFor({ state: 'detached' }))
    const model = page.getByRole('button', { name: /^Model: / })
    await measure('the list of models', click(model), () => page.getByRole('searchbox', { name: 'Find a model' }).waitFor())
    await measure('  and its end', key('Escape'))
    await measure('the menu of a card', click(session.tray.getByRole('button', { name: /^More: / })), () => session.tray.getByRole('menuitem').first().waitFor())
    await measure('the edit of a call', click(session.tray.getByRole('menuitem', { name: /^Edit/ })), () => session.tray.getByRole('textbox').last().waitFor())
    await measure('  a letter in it', async () => session.tray.getByRole('textbox').last().press('x'))
    await session.tray.getByRole('button', { name: 'Back', exact: true }).click()
    await measure('a rule from a card', click(session.tray.getByRole('button', { name: /^Always/ })), () => session.tray.getByRole('group', { name: 'The rule' }).waitFor())
    await measure('  and back', key('Escape'))
    await measure('the panel', click(page.locator('.facts').getByRole('button', { name: 'Details' })), () => page.getByRole('tabpanel').waitFor())
    for (const tab of ['Files', 'Changes', 'Context', 'Rules', 'Cost']) await measure(`  its tab ${tab}`, click(page.getByRole('tab', { name: tab })))
    await measure('  and its end', click(page.getByRole('button', { name: 'Close details' })))
    await measure('another session', click(page.locator(`nav a[href$="${other}"]`)), () => page.getByRole('log').locator('[data-key]').first().waitFor())
    await measure('the inbox', click(page.getByRole('link', { name: /^Waiting for you/ }).first()), () => page.getByRole('heading', { level: 1, name: 'Waiting for you' }).waitFor())
    await page.goto(waiting)
    await session.card.waitFor()
  }
  await measure('an approval', click(session.tray.getByRole('button', { name: /^Approve: / })))
  for (const [name, address] of [['servers', 'servers'], ['usage', 'usage'], ['settings', 'settings/appearance']]) {
    await page.goto(`${app.url}/${address}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    if (name === 'settings') for (const theme of ['Dark', 'Light']) await measure(`the theme ${theme.toLowerCase()}`, click(page.getByRole('radio', { name: theme })))
    await measure(`from ${name} to a new session`, click(page.getByRole('link', { name: 'New session' }).first()), () => page.locator('.empty').waitFor())
  }
  return found
}
