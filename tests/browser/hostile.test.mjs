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

/** Whatever would run in the page leaves a mark. */
const TRAP = () => {
  window.caught = []
  for (const name of ['alert', 'confirm', 'prompt', 'open', 'msgbox']) window[name] = () => window.caught.push(name)
}

/** Everything that decides must be what a click at its place would reach. */
function coveredButtons(page) {
  return page.evaluate(() => {
    const buttons = [...document.querySelectorAll('.tray-root button, form[aria-label="Message"] button')]
    const shown = buttons.filter((button) => button.offsetParent !== null)
    const covered = shown.filter((button) => {
      const { left, top, width, height } = button.getBoundingClientRect()
      const hit = document.elementFromPoint(left + width / 2, top + height / 2)
      return hit === null || !button.contains(hit)
    })
    return { shown: shown.length, covered: covered.map((button) => button.textContent) }
  })
}

function drawnText(said) {
  return said.evaluate((article) => {
    const copy = article.querySelector('.md').cloneNode(true)
    for (const note of copy.querySelectorAll('.md-note')) note.remove()
    return copy.textContent.replace(/\s+/g, '')
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
    // Said with a call, so that the tray stands below the text.
    const pieces = [...source].reduce((parts, character, index) => {
      if (index % 9 === 0) parts.push('')
      parts[parts.length - 1] += character
      return parts
    }, [])
    const size = Math.max(1, Math.ceil(pieces.length / 200))
    const chunks = Array.from({ length: Math.ceil(pieces.length / size) }, (_, index) => pieces.slice(index * size, (index + 1) * size).join(''))
    model.willStream(chunks, { calls: [['execute_command', { command: source.slice(0, 400) }]] })
    await session.say(`payload ${at}`)
    await session.button('Approve once: Run a command').waitFor()
    const said = session.log.locator('article.said').last()
    const expected = (text ?? source).replace(/\s+/g, '')
    await until(`${name}: the text equals its source`, async () => (await drawnText(said)) === expected, 5_000).catch(async () =>
      assert.equal(await drawnText(said), expected, name),
    )
    const { shown, covered } = await coveredButtons(page)
    assert.ok(shown >= 4, `${name}: ${shown} buttons`)
    assert.deepEqual(covered, [], name)
    const width = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth)
    assert.ok(width <= 0, `${name}: the page scrolls sideways`)
    await session.stopButton.click()
    await session.isQuiet()
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
  const approve = session.tray.getByRole('button', { name: /^Approve once/ })
  await until('it is approved', async () => {
    if (await approve.isVisible()) await approve.click({ timeout: 1_000 }).catch(() => {})
    return !(await approve.isVisible())
  })
  await session.answer()

  await session.say(`run: printf '\\033[31mred\\033[0m <script>alert(1)</script> \\033]8;;https://evil.example\\007link\\033]8;;\\007\\033[2J'; printf 'worse' >&2`)
  await session.press('Approve once: Run a command')
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
