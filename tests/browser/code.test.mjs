/** Code in an answer: its colours come from a worker that is loaded for the first block, under the gateway's own policy. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const WORKER = /\/assets\/worker-[\w-]+\.js$/
const CODE = 'fn main() {\n    let a = "</code><script>window.caught = true</script>"; // 1 & 2\n}'
const DIFF = '@@ -1 +1 @@\n-old 1\n+new 2'
const ANSWER = `Here:\n\n\`\`\`rust\n${CODE}\n\`\`\`\n\nAnd:\n\n\`\`\`diff\n${DIFF}\n\`\`\`\n`

const model = await ModelStandIn.start()
after(() => model.close())

function colours(page) {
  return page.locator('.md-code code span').evaluateAll((spans) =>
    Object.fromEntries(spans.map((span) => [span.className, getComputedStyle(span).color])),
  )
}

story('code is highlighted when it is there, and is the text it was', { env: model.env }, async ({ session, page, problems, context, app }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: app.url })
  const workers = () => problems.requests.filter((url) => WORKER.test(url)).length
  model.willSay('Only words, and `a` piece.')
  await session.say('words')
  await session.answer()
  assert.equal(workers(), 0, 'words load no highlighter')

  // A character at a time, so that the colours can only come after the block.
  model.willStream([...ANSWER])
  await session.say('code')
  await session.answer(2)
  const blocks = page.locator('.md-code code')
  await page.locator('.md-code-keyword').first().waitFor()
  await page.locator('.md-code-removed').waitFor()
  assert.equal(workers(), 1)
  assert.deepEqual(await blocks.evaluateAll((all) => all.map((block) => block.textContent)), [CODE, DIFF])
  assert.equal(await page.evaluate(() => window.caught), undefined)
  await page.locator('.md-copy').first().click()
  await page.locator('.md-copy').getByText('Copied').waitFor()
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), CODE)

  await page.emulateMedia({ colorScheme: 'light' })
  const light = await colours(page)
  assert.ok(Object.keys(light).length >= 5, JSON.stringify(light))
  assert.equal(light['md-code-keyword'], 'rgb(143, 37, 101)')
  await page.emulateMedia({ colorScheme: 'dark' })
  await until('the dark colours are there', async () => (await colours(page))['md-code-keyword'] === 'rgb(242, 154, 196)')
  await isAccessible(page, 'code')
})

story('code stays plain, without a word, when the highlighter is gone', { env: model.env }, async ({ session, page }) => {
  const failures = []
  page.on('console', (message) => failures.push(message.text()))
  const asked = page.waitForRequest(WORKER)
  await page.route(WORKER, (route) => route.fulfill({ status: 404 }))
  model.willSay(ANSWER)
  await session.say('code')
  await session.answer()
  await asked
  model.willSay('Still here.')
  await session.say('and now?')
  assert.equal(await session.answer(2), 'Still here.')
  assert.deepEqual(await page.locator('.md-code code').evaluateAll((all) => all.map((block) => block.textContent)), [CODE, DIFF])
  assert.equal(await page.locator('.md-code code span').count(), 0)
  assert.equal(await page.getByText('A new version is ready').count(), 0)
  assert.deepEqual(failures.filter((text) => !text.includes('404')), [])
})
