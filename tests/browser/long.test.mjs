/** A long session: it opens at its end at once, and nothing that is done for it holds the page up. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { ModelStandIn } from './support/model.mjs'
import { slowness } from './support/pace.mjs'
import { SessionView } from './support/session.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()
after(() => model.close())

const TURNS = 150
/** Rows that are drawn at most. */
const MOST_DRAWN = 150
/** The best of these openings counts, as the machine may be busy with other tests. */
const OPENINGS = 5
const OPEN_MS = 300
const TASK_MS = 50
/** How far back the page goes by itself: what the server sends with an opening. */
const FIRST_BACK = 40
const ANSWER = 'Read **three** files, see `a.txt`.\n\n- one\n- two\n\n```js\nconst a = 1\n```\n\nAnd a [link](https://docs.example).'

const model = await ModelStandIn.start()

story('a session of 300 messages opens at its end without a long task', { env: model.env }, async ({ app, page, session }) => {
  for (let turn = 1; turn <= TURNS; turn++) {
    model.willSay(`${ANSWER}\n\nAnswer ${turn}.`)
    await session.say(`Question ${turn}`)
    await session.log.getByText(`Answer ${turn}.`, { exact: true }).waitFor()
    await session.stopButton.waitFor({ state: 'hidden' })
  }
  const path = new URL(page.url()).pathname
  await page.goto(`${app.url}/s/new`)
  await new SessionView(page).isReady()
  // The list of sessions comes by a request of its own.
  await page.locator(`nav a[href$="${path}"]`).waitFor()
  const found = []
  for (let n = 0; n < OPENINGS; n++) {
    found.push(await opened(page, path))
    await page.getByRole('link', { name: 'New session' }).click()
    await page.locator('.empty').waitFor()
  }
  const best = (key) => Math.min(...found.map((one) => one[key]))
  const slow = await slowness(page)
  const told = `on a machine ${slow.toFixed(1)} times as slow as usual`
  assert.ok(best('shownMs') <= OPEN_MS * slow, `the end was there after ${found.map((one) => Math.round(one.shownMs))} ms ${told}`)
  assert.ok(best('longestMs') <= TASK_MS * slow, `the longest tasks took ${found.map((one) => Math.round(one.longestMs))} ms ${told}`)
  assert.ok(Math.max(...found.map((one) => one.drawn)) <= MOST_DRAWN)
})

/** Opens it from the rail; tells when its end was in view, and what the longest task was until all was drawn. */
async function opened(page, path) {
  await page.evaluate((path) => {
    window.found = { shownMs: 0, longestMs: 0 }
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.found.longestMs = Math.max(window.found.longestMs, duration)
    })
    observer.observe({ type: 'longtask' })
    const began = performance.now()
    document.querySelector(`nav a[href$="${path}"]`).click()
    const look = () => {
      const log = document.querySelector('[role="log"]')
      const rows = [...(log?.querySelectorAll('[data-key]') ?? [])]
      const isAtEnd = log && log.scrollHeight - log.scrollTop - log.clientHeight <= 12
      if (isAtEnd && rows.at(-1)?.textContent.includes('Answer 150.')) window.found.shownMs = performance.now() - began
      else requestAnimationFrame(look)
    }
    look()
  }, path)
  const rows = page.locator('[role="log"] [data-key]')
  await until('the end is shown', () => page.evaluate(() => window.found.shownMs))
  const first = `Question ${TURNS - FIRST_BACK}`
  await until('all is drawn', () => page.getByRole('log').getByText(first, { exact: true }).count())
  const isAtEnd = await page.getByRole('log').evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight <= 12)
  assert.ok(isAtEnd, 'drawing what is above moved the end')
  return { ...(await page.evaluate(() => window.found)), drawn: await rows.count() }
}
