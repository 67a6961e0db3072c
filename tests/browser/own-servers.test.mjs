/** A member adds a server for themselves alone, and an admin chooses for whom one is. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { SessionView } from './support/session.mjs'
import { browser, closeBrowserAtTheEnd, story, watch } from './support/story.mjs'
import { DEADLINE_MS, until } from './support/until.mjs'

closeBrowserAtTheEnd()

const ENTRY = '{"mcpServers": {"diary": {"url": "https://diary.example/mcp"}}}'

/** A new member of the same team, in a browser of their own. */
async function member(app, options) {
  await app.cli('admin', 'user', 'add', 'ben')
  const [, link] = /(http\S+)/.exec(await app.cli('link', '--user', 'ben'))
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options })
  context.setDefaultTimeout(DEADLINE_MS)
  const page = await context.newPage()
  const problems = watch(page)
  await page.goto(link)
  await new SessionView(page).isReady()
  return { context, page, problems }
}

for (const [device, options] of [['a desk', {}], ['a phone', { viewport: { width: 390, height: 800 } }]]) {
  story(`a server of one person is theirs alone at ${device}`, { context: options }, async ({ app, page }) => {
    const own = await member(app, options)
    await own.page.goto(`${app.url}/servers`)
    await own.page.getByRole('link', { name: 'Add a server' }).click()
    await own.page.getByText('Only you see it').waitFor()
    // There is nothing to choose where there is one choice.
    assert.equal(await own.page.getByText('Who gets it').count(), 0)
    assert.equal(await own.page.getByRole('button', { name: 'Add from a bundle' }).count(), 0)
    await own.page.getByText('Allowed here: stdio, http, sse.').waitFor()
    await own.page.locator('[name=pasted]').fill(ENTRY)
    await own.page.getByRole('region', { name: 'diary' }).waitFor()
    assert.equal(await own.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
    await own.page.screenshot({ path: `screenshots-out/own-server-${device.replace(' ', '-')}.png` })
    if (device === 'a desk') await isAccessible(own.page, 'adding a server of one\'s own')
    await own.page.getByRole('button', { name: 'Add', exact: true }).click()
    await own.page.waitForURL('**/servers')
    const row = own.page.getByRole('listitem').filter({ hasText: 'diary' })
    assert.match(await row.innerText(), /only for you/)
    await row.getByRole('link', { name: 'diary' }).click()
    await own.page.getByRole('button', { name: 'Edit' }).waitFor()
    await own.page.getByRole('button', { name: 'Test' }).waitFor()

    // The admin of the team does not see it, and is asked for whom theirs is.
    await page.goto(`${app.url}/servers`)
    await page.getByRole('link', { name: 'Add a server' }).waitFor()
    assert.equal(await page.getByText('diary').count(), 0)
    await page.getByRole('link', { name: 'Add a server' }).click()
    const whom = page.getByRole('group', { name: 'Who gets it' })
    await whom.waitFor()
    await whom.getByRole('radio', { name: 'Your team' }).check()
    await page.locator('[name=pasted]').fill(ENTRY)
    await page.getByRole('region', { name: 'diary' }).waitFor()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('alert').filter({ hasText: 'choose another name' }).waitFor()
    await page.getByRole('region', { name: 'diary' }).getByLabel('Name', { exact: true }).fill('team-diary')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.waitForURL('**/servers')
    await own.page.goto(`${app.url}/servers`)
    await until('both are there', async () => (await own.page.getByText(/only for you|for your team/).count()) === 2)
    assert.deepEqual(own.problems.errors, [])
    await own.context.close()
  })
}
