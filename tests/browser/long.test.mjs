/** A long session opens at its end, which is drawn before what is above it. `./run bench page` times it. */
import assert from 'node:assert/strict'
import { importSession } from './support/exported.mjs'
import { SessionView } from './support/session.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const TURNS = 150
/** Rows that are drawn at most. */
const MOST_DRAWN = 150
/** Rows that are drawn first, and the most that one later step adds. */
const FIRST_DRAWN = 12
const MOST_AT_ONCE = 48
/** How far back the page goes by itself: what the server sends with an opening. */
const FIRST_BACK = 40

story('a session of 300 messages opens at its end, and is drawn in steps', {}, async ({ app, context, page }) => {
  const path = `/s/${await importSession(app, context, TURNS)}`
  await page.reload()
  await new SessionView(page).isReady()
  // The list of sessions comes by a request of its own.
  await page.locator(`nav a[href$="${path}"]`).waitFor()
  const { first, mostAtOnce, drawn } = await opened(page, path)
  assert.ok(first > 0 && first <= FIRST_DRAWN, `${first} rows were drawn first`)
  assert.ok(mostAtOnce <= MOST_AT_ONCE, `${mostAtOnce} rows were drawn at once`)
  assert.ok(drawn <= MOST_DRAWN, `${drawn} rows were drawn`)
})

/** Opens it from the rail; counts the rows that are drawn first, in the largest step, and in all. */
async function opened(page, path) {
  await page.evaluate((path) => {
    window.found = { first: 0, mostAtOnce: 0 }
    let before = 0
    const count = () => {
      const rows = document.querySelectorAll('[role="log"] [data-key]').length
      window.found.first ||= rows
      window.found.mostAtOnce = Math.max(window.found.mostAtOnce, rows - before)
      before = rows
    }
    new MutationObserver(count).observe(document.body, { childList: true, subtree: true })
    document.querySelector(`nav a[href$="${path}"]`).click()
  }, path)
  const rows = page.locator('[role="log"] [data-key]')
  await page.getByRole('log').getByText('Answer 150.', { exact: true }).waitFor()
  const first = `Question ${TURNS - FIRST_BACK}`
  await until('all is drawn', () => page.getByRole('log').getByText(first, { exact: true }).count())
  const isAtEnd = await page.getByRole('log').evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight <= 12)
  assert.ok(isAtEnd, 'drawing what is above moved the end')
  return { ...(await page.evaluate(() => window.found)), drawn: await rows.count() }
}
