/** Whatever goes away comes back, and nothing is lost or shown twice. */
import assert from 'node:assert/strict'
import { SessionView } from './support/session.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const words = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => `word${from + at}`).join(' ')

/** Also what streams past is checked: no frame may show a word twice or leave one out. */
async function watchWords(page) {
  await page.addInitScript(() => {
    window.wrong = []
    new MutationObserver(() => {
      for (const said of document.querySelectorAll('article.said .md')) {
        const shown = said.textContent.trim().split(/\s+/).slice(0, -1)
        const at = shown.findIndex((word, index) => word !== `word${index + 1}`)
        if (at >= 0 && window.wrong.length < 5) window.wrong.push(`${at}: ${shown.slice(Math.max(0, at - 2), at + 3)}`)
      }
    }).observe(document, { childList: true, subtree: true, characterData: true })
  })
}

story('a reload in mid-stream loses nothing and shows nothing twice', { env: { SPL_LLM_SCRIPTED_PACE_MS: '15' } }, async ({ session, page }) => {
  await watchWords(page)
  await session.say('stream: 250')
  await session.log.getByText('word20 ').waitFor()
  await page.reload()
  await session.log.getByText('word60 ').waitFor()
  await page.reload()
  assert.equal(await session.answer(), words(1, 250))
  assert.deepEqual(await page.evaluate(() => window.wrong), [])
  assert.equal((await session.text()).filter((row) => row.includes('stream: 250')).length, 1)
})

story('a reload in mid-approval keeps the card and its half', {}, async ({ session, page }) => {
  await session.say('make two files and show them')
  await session.press('Approve: Write notes/one.txt')
  await session.row('Approved').waitFor()
  const before = await session.text()
  await page.reload()
  await session.counts('1 of 2 waiting for you.')
  assert.equal(await session.heading(), 'Write notes/two.txt')
  assert.deepEqual(await session.text(), before)
  await session.press('Approve: Write notes/two.txt')
  await session.press('Approve: Read notes/one.txt')
  await session.press('Approve: Read notes/two.txt')
  await session.answer()
  const live = await session.text()
  await page.reload()
  await session.answer()
  assert.deepEqual(await session.text(), live, 'history reads as it was lived')
})

story('a second tab follows live', { env: { SPL_LLM_SCRIPTED_PACE_MS: '15' } }, async ({ session, page, context }) => {
  await session.say('stream: 200')
  await session.log.getByText('word10 ').waitFor()
  const other = await context.newPage()
  await watchWords(other)
  await other.goto(await session.address())
  const second = new SessionView(other)
  assert.equal(await second.answer(), words(1, 200))
  assert.deepEqual(await other.evaluate(() => window.wrong), [])
  await second.say('run: echo from the other tab')
  await session.press('Approve: Run a command')
  await session.answer(2)
  await second.answer(2)
  assert.deepEqual(await second.text(), await session.text())
})

story('offline is said, what is typed is kept, and it goes out by itself', { env: { SPL_LLM_SCRIPTED_PACE_MS: '10' } }, async ({ session, page, context }) => {
  await session.say('stream: 300')
  await session.log.getByText('word10 ').waitFor()
  await context.setOffline(true)
  await session.says('You are offline. What you typed is kept.').waitFor()
  await session.say('stream: 3')
  await context.setOffline(false)
  await session.says('You are offline.').waitFor({ state: 'hidden' })
  assert.equal(await session.answer(1, 30_000), words(1, 300))
  assert.equal(await session.answer(2, 30_000), words(1, 3))
  assert.equal((await session.text()).filter((row) => row.includes('stream: 3') && !row.includes('stream: 300')).length, 1)
})

story('the server is killed while an approval waits', {}, async ({ app, session, page }) => {
  await session.say('make two files and show them')
  await session.press('Approve: Write notes/one.txt')
  await session.row('Approved').waitFor()
  const before = await session.text()
  await app.kill()
  await session.says(/Connection lost \d+ s ago/).waitFor()
  await session.composer.fill('typed while it was away')
  await app.launch()
  await page.getByRole('link', { name: 'Connected' }).waitFor()
  await session.says(/Connection lost/).waitFor({ state: 'hidden' })
  assert.deepEqual(await session.text(), before)
  assert.equal(await session.composer.inputValue(), 'typed while it was away')
  await session.press('Approve: Write notes/two.txt')
  await session.press('Approve: Read notes/one.txt')
  await session.press('Approve: Read notes/two.txt')
  assert.match(await session.answer(), /The second note/)
})

story('the server is killed while a call runs: nobody pretends to know', {}, async ({ app, session, page }) => {
  await session.say('run: echo run >> count; echo started; sleep 28')
  await session.press('Approve: Run a command')
  await session.row('Running').getByText('started', { exact: true }).waitFor()
  await app.kill()
  await app.launch()
  await page.getByRole('link', { name: 'Connected' }).waitFor()
  const row = session.row('Outcome unknown')
  await row.getByText('It is unknown whether this ran.').waitFor()
  await session.answer()
  await row.getByRole('button', { name: 'It ran: Run a command' }).click()
  await row.getByText('you: it ran').waitFor()
  assert.equal(await row.getByRole('button', { name: /It didn't run/ }).count(), 0)
  await page.reload()
  await row.getByText('you: it ran').waitFor()
  await session.isQuiet()
  await session.say('run: cat count')
  await session.press('Approve: Run a command')
  const told = await session.answer(2)
  assert.equal(told.match(/\brun\b/g)?.length, 1, `it ran once: ${told}`)
})

story('a polite stop says so, and the page returns by itself', {}, async ({ app, session, page }) => {
  await session.say('run: echo still here')
  await session.button('Approve: Run a command').waitFor()
  const took = await app.terminate()
  assert.ok(took < 2_500, `it took ${took} ms`)
  await session.says('Sepal is restarting. Nothing confirmed is lost.').waitFor()
  await app.launch()
  await session.says('Sepal is restarting.').waitFor({ state: 'hidden' })
  await session.press('Approve: Run a command')
  assert.match(await session.answer(), /still here/)
  await until('the connection is told as open', () => page.getByRole('link', { name: 'Connected' }).isVisible())
})
