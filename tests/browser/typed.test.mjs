/** What a person typed, decided or stopped while the server was away: nothing of it is lost or done unasked. */
import assert from 'node:assert/strict'
import { sentCommands } from './support/session.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

/** Cuts the page's sockets, now and later, until it is let go; the page itself can still be loaded. */
async function cutter(page) {
  const [open, cut] = [new Set(), { isCut: false }]
  await page.routeWebSocket(/socket\.io/, (socket) => {
    if (cut.isCut) return socket.close()
    open.add(socket)
    socket.connectToServer()
  })
  return async (isCut) => {
    cut.isCut = isCut
    if (isCut) await Promise.all([...open].map((socket) => socket.close()))
  }
}

const away = (session) => session.says('What you typed is kept, and the agent goes on if the server runs.')

story('an approval that was not sent is taken back, and the refusal goes out instead', {}, async ({ session, page }) => {
  const cut = await cutter(page)
  await page.reload()
  await session.isReady()
  await session.say('run: echo never')
  await session.button('Approve: Run a command').waitFor()
  await cut(true)
  await away(session).waitFor()
  await session.press('Approve: Run a command')
  await session.counts('Not sent yet. Sepal sends it when you are back online.')
  await session.press('Take back: Run a command')
  await session.press('Reject: Run a command')
  await page.keyboard.press('Enter')
  await session.counts('Not sent yet.')
  await cut(false)
  await session.isQuiet()
  await session.answer()
  await session.row('Refused').waitFor()
})

story('a stop that was pressed while the connection was away arrives', { env: { SPL_LLM_SCRIPTED_PACE_MS: '60' } }, async ({ session, page }) => {
  const cut = await cutter(page)
  await page.reload()
  await session.isReady()
  await session.say('stream: 900')
  await session.log.getByText('word5 ').waitFor()
  await cut(true)
  await away(session).waitFor()
  await session.stopButton.click()
  await session.says('The agent stops when you are back online.').waitFor()
  await cut(false)
  await session.log.getByText('Stopped.').waitFor()
})

story('a message to a new session outlives a reload while the server is away', {}, async ({ session, page }) => {
  const cut = await cutter(page)
  await cut(true)
  await page.reload()
  await session.says('The server does not answer.').waitFor()
  await session.say('stream: 3')
  await session.log.getByText('Not sent yet.').waitFor()
  await page.reload()
  await session.log.getByText('stream: 3').waitFor()
  await cut(false)
  assert.equal(await session.answer(), 'word1 word2 word3')
  assert.equal((await session.text()).filter((row) => row.includes('stream: 3')).length, 1)
})

story('a new session that was left open is used after a restart of the server', {}, async ({ app, session, page }) => {
  await app.kill()
  await away(session).waitFor()
  await app.launch()
  await session.isReady()
  await session.say('stream: 3')
  assert.equal(await session.answer(), 'word1 word2 word3')
  await session.address()
})

story('a message above the limit of a frame stays in the composer, and the session goes on', { env: { SPL_LIMIT_FRAME_BYTES: '20000' } }, async ({ session, page }) => {
  const large = 'x'.repeat(20_000)
  const sent = sentCommands(page)
  await page.reload()
  await session.say('stream: 3')
  await session.answer()
  await session.say(large)
  await session.says('Not sent: it is too long.').waitFor()
  assert.equal(await session.composer.inputValue(), large)
  await session.say('stream: 4')
  assert.equal(await session.answer(2), 'word1 word2 word3 word4')
  assert.deepEqual(sent.map(([, { text }]) => text), ['stream: 3', 'stream: 4'])
})

story('a message that waits is edited and withdrawn before it is sent', {}, async ({ session, page }) => {
  const cut = await cutter(page)
  await page.reload()
  await session.isReady()
  await cut(true)
  await away(session).or(session.says('The server does not answer.')).first().waitFor()
  await session.say('stream: 3')
  await session.say('stream: 5')
  await session.log.getByRole('button', { name: 'Withdraw: stream: 3' }).click()
  await session.log.getByRole('button', { name: 'Edit: stream: 5' }).click()
  assert.equal(await session.composer.inputValue(), 'stream: 5')
  await session.say('stream: 2')
  await cut(false)
  assert.equal(await session.answer(), 'word1 word2')
  assert.equal((await session.text()).filter((row) => row.includes('stream:')).length, 1)
})
