/** Everything that waits, in all sessions, decided from one page: on the phone in two taps, at the desk by keys. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

/** What a hand on its way could still press is ignored for 400 ms. */
const GUARD_MS = 400
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/** Talks to the server as the page would. */
async function api(app, context) {
  const { csrfToken } = await (await context.request.get(`${app.url}/api/auth/me`)).json()
  const headers = { 'X-CSRF-Token': csrfToken }
  const read = async (path) => (await context.request.get(`${app.url}${path}`)).json()
  const post = async (path, data) => {
    const answer = await context.request.post(`${app.url}${path}`, { data, headers })
    assert.ok(answer.ok(), await answer.text())
    return answer.json()
  }
  /** A session in which a call waits for that command. */
  const ask = async (title, command) => {
    const { id } = await post('/api/sessions', { title })
    await post(`/api/sessions/${id}/messages`, { text: `run: ${command}` })
    await until(`"${title}" waits`, async () => (await read(`/api/approvals?session=${id}`)).items.length === 1)
    return id
  }
  return { read, post, ask }
}

const outputs = async ({ read }, id) => (await read(`/api/sessions/${id}/events?limit=500`)).items.filter(({ event }) => event === 'tool:output')

/** Until nothing has moved for as long as the cards ignore hands. */
async function isArmed(page) {
  await page.evaluate(() => {
    window.movedAt = performance.now()
    window.observer?.disconnect()
    window.observer = new MutationObserver(() => (window.movedAt = performance.now()))
    window.observer.observe(document.querySelector('main'), { subtree: true, childList: true })
  })
  await until('the cards take decisions', () => page.evaluate((ms) => performance.now() - window.movedAt > ms, GUARD_MS + 100))
}

const isSaid = (page, title) => until(`the tab says "${title}"`, async () => (await page.title()).startsWith(title))
const icon = (page) => page.evaluate(() => document.querySelector('link[rel="icon"]').getAttribute('href'))

story('from the phone a call is approved in two taps, wherever one was', { context: PHONE }, async ({ app, context, page }) => {
  const server = await api(app, context)
  const first = await server.ask('The first', 'echo one')
  const second = await server.ask('The second', 'echo two')
  await page.goto(`${app.url}/settings/notifications`)
  await isSaid(page, '(2) Settings')
  assert.match(await icon(page), /waiting/)

  await page.getByRole('link', { name: 'Waiting for you: 2 calls' }).tap()
  const titles = page.locator('.inbox-title')
  await until('both are listed, the oldest first', async () => (await titles.allInnerTexts()).join() === 'The first,The second')
  const approve = page.getByRole('region', { name: 'The first' }).getByRole('button', { name: 'Approve: Run a command' })
  await approve.waitFor()
  await isArmed(page)
  const isReached = await approve.evaluate((button) => {
    const { left, top, width, height } = button.getBoundingClientRect()
    const hit = document.elementFromPoint(left + width / 2, top + height / 2)
    return hit !== null && button.contains(hit) && height >= 44
  })
  assert.ok(isReached, 'it can be tapped without scrolling')
  await approve.tap()

  await until('it ran', async () => (await outputs(server, first))[0]?.args[0].includes('one'))
  assert.equal((await outputs(server, second)).length, 0)
  await isSaid(page, '(1) ')
  await until('only the second is left', async () => (await titles.allInnerTexts()).join() === 'The second')
})

story('at the desk everything is decided by keys, and what others decide says so', {}, async ({ app, context, page }) => {
  const server = await api(app, context)
  await page.goto(`${app.url}/approvals`)
  await page.getByText('Nothing is waiting for you.').waitFor()
  assert.ok(!(await page.getByText('Last decision').isVisible()))
  await isAccessible(page, 'an empty inbox')

  const ids = []
  for (const title of ['The first', 'The second', 'The third']) ids.push(await server.ask(title, `echo ${title}`))
  await page.getByRole('region', { name: 'The third' }).waitFor()
  await isSaid(page, '(3) ')
  await page.getByRole('link', { name: 'Waiting for you: 3 calls' }).waitFor()
  await isAccessible(page, 'the inbox')
  assert.ok(await page.evaluate(() => document.activeElement === document.body), 'nothing took the focus')

  const focused = () => page.evaluate(() => document.activeElement.closest('.inbox-session')?.getAttribute('aria-label') ?? document.activeElement.textContent.trim())
  await page.keyboard.press('Alt+ArrowUp')
  assert.equal(await focused(), 'The first')
  await page.keyboard.press('ArrowDown')
  assert.equal(await focused(), 'The second')
  await isArmed(page)
  await page.keyboard.press('r')
  await page.getByLabel('Reason (optional)').fill('not this one')
  await isArmed(page)
  await page.keyboard.press('Enter')
  await until('the focus is on the next one', async () => (await focused()) === 'The third')
  await until('it was refused', async () => (await outputs(server, ids[1]))[0]?.args[0].includes('not this one'))

  // Decided by another client: here it says so, and goes.
  const { items } = await server.read(`/api/approvals?session=${ids[0]}`)
  const card = items[0].queue.calls[0]
  const words = page.getByRole('region', { name: 'The first' }).getByText('Refused by you').first()
  await Promise.all([words.waitFor(), server.post(`/api/sessions/${ids[0]}/approvals`, { callId: card.callId, approved: false, digest: card.digest })])
  await page.getByRole('region', { name: 'The first' }).waitFor({ state: 'detached' })

  await isArmed(page)
  await page.keyboard.press('a')
  await page.getByText('Nothing is waiting for you.').waitFor()
  await page.getByText(/^Last decision .* ago/).waitFor()
  // The head counts what waits; the news of that comes after the answer to the decision.
  await until('the focus is on the head, which counts nothing', async () => (await focused()) === 'Waiting for you')
  await isSaid(page, 'Waiting for you')
})

story('of several tabs that nobody looks at one tells, and only what was not there before', {}, async ({ app, context, page }) => {
  const server = await api(app, context)
  await context.addInitScript(() => {
    window.shown = []
    let isHidden = false
    Object.defineProperty(document, 'visibilityState', { get: () => (isHidden ? 'hidden' : 'visible') })
    window.hide = () => {
      isHidden = true
      document.dispatchEvent(new Event('visibilitychange'))
    }
    window.Notification = class {
      static permission = 'default'
      static requestPermission = async () => (window.Notification.permission = 'granted')
      constructor(title, options) {
        window.shown.push([title, options.body, Object.keys(options).sort().join()])
      }
      close() {}
    }
    if (localStorage.getItem('sepal.notifications') === 'on') window.Notification.permission = 'granted'
  })
  await server.ask('Waited before', 'echo before')
  await page.goto(`${app.url}/settings/notifications`)
  await page.getByLabel('Notify me when a call waits for me').click()
  await page.getByText('On in this browser', { exact: false }).waitFor()
  await isAccessible(page, 'settings')
  const other = await context.newPage()
  await other.goto(`${app.url}/usage`)
  await isSaid(other, '(1) ')

  const told = async () => (await Promise.all([page, other].map((tab) => tab.evaluate(() => window.shown)))).flat()
  await page.evaluate(() => window.hide())
  const isRead = page.waitForResponse((answer) => new URL(answer.url()).searchParams.has('session'))
  await server.ask('Seen in the other tab', 'echo seen')
  await Promise.all([isRead, isSaid(page, '(2) ')])
  await other.evaluate(() => window.hide())
  const locks = () => page.evaluate(async () => (await navigator.locks.query()).held.map(({ name }) => name))
  await until('no tab is seen', async () => !(await locks()).some((name) => name.endsWith('is-seen')))
  await server.ask('Deploy', 'echo secret')
  await until('it is told', async () => (await told()).length > 0)
  await isSaid(other, '(3) ')
  assert.deepEqual(await told(), [['Deploy', 'Waits for you: execute_command', 'body,icon,tag']])
})
