/** What a hostile model or tool could write, through the real page. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

/** The page's own list. Node 20 reads no TypeScript, and the file has no more of it than this. */
async function readPayloads() {
  const source = readFileSync(new URL('../../web/src/markdown/payloads.ts', import.meta.url), 'utf8')
  const plain = source.replace(/export interface [\s\S]*?\n}\n/, '').replace(': Payload[]', '')
  const { PAYLOADS } = await import(`data:text/javascript;base64,${Buffer.from(plain).toString('base64')}`)
  assert.ok(PAYLOADS.length >= 40)
  // Half a surrogate pair is no UTF-8, so no provider can send it.
  return PAYLOADS.filter(({ source: text }) => text.isWellFormed?.() ?? !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/.test(text))
}

/** Payloads that one session is shown; a long page would only be slow. */
const A_SESSION = 12

/** As a model streams: a few characters at a time, but never more than some hundred pieces. */
function inPieces(text) {
  const characters = [...text]
  const size = Math.max(5, Math.ceil(characters.length / 100))
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, at) => characters.slice(at * size, (at + 1) * size).join(''))
}

/** Whatever would run in the page leaves a mark. */
const TRAP = () => {
  window.caught = []
  for (const name of ['alert', 'confirm', 'prompt', 'open', 'msgbox']) window[name] = () => window.caught.push(name)
}

/** In the page: waits for the card, then gives what is drawn and what covers the buttons. Quick, also in a long page. */
function look(expected) {
  const drawn = () => {
    const copy = [...document.querySelectorAll('article.said .md')].at(-1).cloneNode(true)
    for (const note of copy.querySelectorAll('.md-note')) note.remove()
    // What is written is kept beside what is drawn.
    for (const formula of copy.querySelectorAll('math')) formula.replaceWith(formula.querySelector('annotation').textContent)
    return copy.textContent.replace(/\s+/g, '')
  }
  const examine = () => {
    const buttons = [...document.querySelectorAll('.tray-root button, form[aria-label="Message"] button')]
    const shown = buttons.filter((button) => button.offsetParent !== null)
    // What decides must be what a click at its place would reach.
    const covered = shown.filter((button) => {
      const { left, top, width, height } = button.getBoundingClientRect()
      const hit = document.elementFromPoint(left + width / 2, top + height / 2)
      return hit === null || !button.contains(hit)
    })
    return {
      text: drawn(),
      shown: shown.length,
      covered: covered.map((button) => button.textContent),
      sideways: document.scrollingElement.scrollWidth - innerWidth,
    }
  }
  return new Promise((resolve) => {
    const end = performance.now() + 10_000
    const poll = () => {
      const isThere = document.querySelector('article.card [data-decides]') !== null
      if ((isThere && drawn() === expected) || performance.now() > end) resolve(examine())
      else requestAnimationFrame(poll)
    }
    poll()
  })
}

const model = await ModelStandIn.start()

story('every hostile text is drawn as text, and covers nothing', { env: model.env }, async ({ t, session, page, app, problems }) => {
  t.after(() => model.close())
  await page.addInitScript(TRAP)
  await page.reload()
  await session.isReady()
  const payloads = await readPayloads()
  for (const [at, { name, source, text }] of payloads.entries()) {
    if (at % A_SESSION === A_SESSION - 1) {
      await page.goto(`${app.url}/s/new`)
      await session.isReady()
    }
    // Said with a call, so that the tray stands below the text.
    model.willStream(inPieces(source), { calls: [['execute_command', { command: source.slice(0, 400) }]] })
    await page.fill('#message', `payload ${at}`)
    await page.press('#message', 'Enter')
    const expected = (text ?? source).replace(/\s+/g, '')
    const seen = await page.evaluate(look, expected)
    assert.equal(seen.text, expected, name)
    assert.ok(seen.shown >= 4, `${name}: ${seen.shown} buttons`)
    assert.deepEqual(seen.covered, [], name)
    assert.ok(seen.sideways <= 0, `${name}: the page scrolls sideways`)
    await page.click('form[aria-label="Message"] button:has-text("Stop")')
    await page.waitForSelector('.tray', { state: 'detached' })
  }
  assert.deepEqual(await page.evaluate(() => window.caught), [])
  const foreign = problems.requests.filter((url) => !url.startsWith(`${app.url}/`) && !url.startsWith('blob:'))
  assert.deepEqual(foreign, [], 'no request leaves the origin')
})

story('hostile arguments and outputs are shown for what they are', {}, async ({ session, page, problems, app }) => {
  await page.addInitScript(TRAP)
  await page.reload()
  await session.isReady()
  await session.say('write: a\u202Etxt.exe <img src=https://evil.example/x onerror=alert(1)>')
  await session.tray.getByText('⟦U+202E⟧').first().waitFor()
  await session.tray.getByText('Contains hidden characters').first().waitFor()
  assert.equal(await session.tray.locator('img, a').count(), 0)
  const approve = session.tray.getByRole('button', { name: /^Approve:/ })
  await until('it is approved', async () => {
    if (await approve.isVisible()) await approve.click({ timeout: 1_000 }).catch(() => {})
    return !(await approve.isVisible())
  })
  await session.answer()

  await session.say(`run: printf '\\033[31mred\\033[0m <script>alert(1)</script> \\033]8;;https://evil.example\\007link\\033]8;;\\007\\033[2J'; printf 'worse' >&2`)
  await session.press('Approve: Run a command')
  await session.answer(2)
  const row = session.row('execute_command')
  await row.getByRole('button', { expanded: false }).click()
  const output = row.getByRole('group', { name: 'Output' })
  await output.getByText('<script>alert(1)</script>').waitFor()
  assert.equal(await output.locator('a, script, img').count(), 0)
  assert.match(await output.innerText(), /worse/)
  assert.deepEqual(await page.evaluate(() => window.caught), [])
  assert.deepEqual(problems.requests.filter((url) => !url.startsWith(`${app.url}/`) && !url.startsWith('blob:')), [])
})
