/** A session of 10,000 entries opens at its end, and the page never holds more than a window of it. */
import assert from 'node:assert/strict'
import { importSession } from './support/exported.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const TURNS = 5_000
/** Entries that are in the page at most, whatever is done. */
const MOST_HELD = 150
/** How far back the page goes by itself: what the server sends with an opening. */
const FIRST_BACK = 40
/** How many pages are read by scrolling up. */
const PAGES_BACK = 3
/** A word that one message alone has, far from both ends. */
const RARE = 'quokka'
const RARE_TURN = 1_700
/** What a row may move while something is drawn above it. */
const STAYS_PX = 2

/** Watches from now on how many entries the page holds, at each change of it. */
function watchHeld(page) {
  return page.evaluate(() => {
    window.mostHeld = 0
    const count = () => (window.mostHeld = Math.max(window.mostHeld, document.querySelectorAll('[role="log"] [data-key]').length))
    new MutationObserver(count).observe(document.body, { childList: true, subtree: true })
    count()
  })
}

story('a session of 10,000 entries opens at its end and is walked without being held', {}, async ({ app, context, page, session }) => {
  const sessionId = await importSession(app, context, TURNS, (turn) => (turn === RARE_TURN ? ` about a ${RARE}` : ''))
  const path = `/s/${sessionId}`
  await page.reload()
  await session.isReady()
  await page.locator(`nav a[href$="${path}"]`).waitFor()
  await watchHeld(page)

  // Up, page by page: what is read stays where it is, and what is far below leaves the page.
  await page.locator(`nav a[href$="${path}"]`).click()
  await session.log.getByText(`Answer ${TURNS}.`, { exact: true }).waitFor()
  await session.log.getByText(`Question ${TURNS - FIRST_BACK}`, { exact: true }).waitFor()
  for (let n = 0; n < PAGES_BACK; n++) await pagedUp(page)
  const oldest = await firstQuestion(page)
  assert.ok(oldest <= TURNS - PAGES_BACK * 25, `the oldest that is drawn is ${oldest}`)
  assert.equal(await session.log.getByText(`Answer ${TURNS}.`, { exact: true }).count(), 0, 'the end left the page')

  // A hit of the search, thousands of entries back, and to the very beginning from there.
  await page.keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: 'Search and commands' })
  const found = page.getByRole('option').filter({ has: page.locator('mark', { hasText: RARE }) }).first()
  // The index has what was imported a little later.
  await until('the word is found', async () => {
    await field.fill('')
    await field.fill(RARE)
    await page.getByText(/^\d+ results?$|^No results\.$/).first().waitFor({ state: 'attached' })
    return (await found.count()) > 0
  }, 60_000)
  await found.click()
  const hit = session.log.locator('.marked').filter({ hasText: RARE })
  await hit.waitFor()
  await until('the hit is in view', () => hit.evaluate((row) => {
    const box = row.closest('[role="log"]').getBoundingClientRect()
    const { top, bottom } = row.getBoundingClientRect()
    return top >= box.top && bottom <= box.bottom
  }))
  assert.ok(await session.log.locator('[data-key]').count() > 100, 'what is around the hit is drawn')
  await pagedUp(page)
  assert.equal(await page.getByText('new below').count(), 0, 'what was read on the way to a hit is not new')
  await session.log.getByRole('button', { name: 'Show earlier' }).waitFor()

  // Back at the end.
  await page.getByRole('button', { name: /To the end|new below/ }).click()
  await session.log.getByText(`Answer ${TURNS}.`, { exact: true }).waitFor()
  const held = await page.evaluate(() => window.mostHeld)
  assert.ok(held > 100 && held <= MOST_HELD, `${held} entries were in the page at once`)
})

/** The number of the first question that is drawn. */
function firstQuestion(page) {
  return page.getByRole('log').evaluate((log) => Number(/Question (\d+)/.exec(log.textContent)[1]))
}

/** Scrolls to the top of what is drawn until older entries come, and holds that the row in view stayed where it was. */
async function pagedUp(page) {
  const before = await firstQuestion(page)
  const moved = await page.getByRole('log').evaluate((log) => {
    const before = Number(/Question (\d+)/.exec(log.textContent)[1])
    const first = () => Number(/Question (\d+)/.exec(log.textContent)[1])
    return new Promise((resolve) => {
      log.scrollTop = 0
      const rows = () => [...log.querySelectorAll('[data-key]')]
      const row = rows().find((row) => row.getBoundingClientRect().bottom > log.getBoundingClientRect().top)
      // By what it says: an answer whose turn began on an older page is drawn anew with that.
      const said = (row) => row.textContent.match(/Question \d+|Answer \d+/)[0]
      const words = said(row)
      const top = row.getBoundingClientRect().top
      let left = 20
      const look = () => {
        const again = rows().find((row) => said(row) === words)
        // Some frames more: a place that is kept is not lost afterwards.
        if (first() < before && --left === 0) resolve(again ? again.getBoundingClientRect().top - top : 'gone')
        else requestAnimationFrame(look)
      }
      look()
    })
  })
  assert.ok(Math.abs(moved) <= STAYS_PX, `the row that was read moved by ${moved} px`)
  await until('older entries are drawn', async () => (await firstQuestion(page)) < before)
}
