/** What happens in a session is seen on every screen that the person has open, whatever it shows. */
import assert from 'node:assert/strict'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { SessionView } from './support/session.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

/** Notes in the tab itself when its title, its icon and its list say that one call waits. */
function watchFor(tab) {
  return tab.evaluate(() => {
    window.seen = {}
    const look = () => {
      const note = (what, holds) => holds && (window.seen[what] = true)
      note('title', document.title.startsWith('(1) '))
      note('icon', document.querySelector('link[rel="icon"]').getAttribute('href').includes('waiting'))
      note('list', /Waiting for you/.test(document.querySelector('nav').textContent))
    }
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true })
  })
}

story('a call that begins to wait is seen on every tab, and until it is decided', {}, async ({ app, context, page, session }) => {
  const settings = await context.newPage()
  await settings.goto(`${app.url}/settings`)
  await settings.getByRole('heading', { name: 'Settings' }).waitFor()
  const another = await context.newPage()
  await another.goto(`${app.url}/s/new`)
  const other = new SessionView(another)
  await other.isReady()
  await other.say('hello')
  await other.answer()
  const tabs = { settings, another }
  for (const tab of Object.values(tabs)) await watchFor(tab)

  await session.say('run: echo hello')
  await session.button('Approve: Run a command').waitFor()
  for (const [name, tab] of Object.entries(tabs)) {
    await until(`the tab "${name}" says so`, () => tab.evaluate(() => Object.keys(window.seen).length === 3))
  }
  // The count of the tab that asked comes from the same news as everybody's, which may follow the card.
  await until('the tab that asked counts it', async () => /^\(1\) /.test(await page.title()))

  // Decided by another client: every tab is at rest again.
  const { csrfToken } = await (await context.request.get(`${app.url}/api/auth/me`)).json()
  const id = await session.id()
  const { items } = await (await context.request.get(`${app.url}/api/sessions?state=waiting`)).json()
  assert.deepEqual(items.map((item) => item.id), [id])
  const { items: events } = await (await context.request.get(`${app.url}/api/sessions/${id}/events?limit=500`)).json()
  const card = events.find(({ event }) => event === 'tool:approval_required').args[0]
  const decided = await context.request.post(`${app.url}/api/sessions/${id}/approvals`, {
    data: { callId: card.callId, approved: false, digest: card.digest },
    headers: { 'X-CSRF-Token': csrfToken },
  })
  assert.ok(decided.ok(), await decided.text())
  for (const [name, tab] of Object.entries({ page, ...tabs })) {
    await until(`the tab "${name}" is at rest`, () =>
      tab.evaluate(() => !document.title.startsWith('(') && !document.querySelector('link[rel="icon"]').getAttribute('href').includes('waiting')))
  }

  // What is deleted in one tab leaves the list of the others.
  await settings.getByRole('link', { name: /run: echo hello/ }).waitFor()
  const removed = await context.request.delete(`${app.url}/api/sessions/${id}`, { headers: { 'X-CSRF-Token': csrfToken } })
  assert.equal(removed.status(), 204)
  await settings.getByRole('link', { name: /run: echo hello/ }).waitFor({ state: 'detached' })
})
