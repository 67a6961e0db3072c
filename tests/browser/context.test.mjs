/** What of a conversation the model reads, and how a person begins anew. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()
after(() => model.close())

const model = await ModelStandIn.start()

/** What the model was sent last, without the system prompt. */
const lastAsked = () => model.requests.at(-1).messages.filter(({ role }) => role !== 'system')
const systemPrompt = (request) => request.messages.filter(({ role }) => role === 'system')

story('a fresh context is begun from the panel at any time, and the transcript stays', { env: model.env }, async ({ page, session }) => {
  // An answer has details too.
  const details = page.locator('header').getByRole('button', { name: 'Details' })
  const begin = page.getByRole('button', { name: 'Start with fresh context' })
  model.willSay('A zebra.')
  await session.say('Which animal has stripes?')
  await session.answer(1)
  await details.click()
  await begin.waitFor()
  // What lies over the transcript hides it.
  const panel = page.getByRole('complementary', { name: 'Details' })
  const ground = await panel.evaluate((panel) => getComputedStyle(panel).backgroundColor)
  assert.notEqual(ground, 'rgba(0, 0, 0, 0)')
  await isAccessible(page, 'the details with the fresh context')
  await begin.click()
  await session.says('New context. The model no longer sees what is above.').waitFor()
  await panel.getByRole('button', { name: 'Close details' }).click()
  await begin.waitFor({ state: 'hidden' })

  model.willStream(['It ', 'depends', '.'], { paceMs: 600 })
  await session.say('And now?')
  await session.stopButton.waitFor()
  await details.click()
  await begin.click()
  await page.getByText('The agent is working. Stop it first.').waitFor()
  await page.keyboard.press('Escape')
  await session.answer(2)
  assert.equal(await session.log.getByText('Which animal has stripes?').count(), 1)
  assert.equal(await session.log.getByText('A zebra.').count(), 1)
  assert.deepEqual(lastAsked().map(({ role, content }) => [role, content]), [['user', 'And now?']])
  assert.ok(systemPrompt(model.requests[0]).length > 0)
  assert.deepEqual(systemPrompt(model.requests.at(-1)), systemPrompt(model.requests[0]))
})

story('what the next request costs is said while one writes, and unknown is not free', { env: model.env }, async ({ app, context, page, session }) => {
  const top = () => session.composer.evaluate((field) => field.getBoundingClientRect().top)
  const before = await top()
  await session.composer.fill('hello')
  await page.getByRole('button', { name: 'price unknown' }).waitFor()
  assert.equal(await top(), before, 'nothing moves')

  const { csrfToken } = await (await context.request.get(`${app.url}/api/auth/me`)).json()
  const data = { kind: 'openai-compatible', scope: 'installation', baseUrl: model.env.OPENAI_BASE_URL, models: ['dear'], prices: { dear: { input: 10, output: 50 } } }
  const added = await context.request.put(`${app.url}/api/providers/own`, { data, headers: { 'X-CSRF-Token': csrfToken } })
  assert.equal(added.status(), 201, await added.text())
  await page.getByRole('button', { name: /^Model: stub/ }).click()
  await page.getByRole('searchbox', { name: 'Find a model' }).fill('dear')
  await page.getByRole('group', { name: 'Models' }).getByRole('button', { name: 'dear' }).first().waitFor()
  await page.keyboard.press('Enter')
  const estimate = page.getByRole('button', { name: /^about \$0\.\d+ plus the answer$/ })
  await estimate.waitFor()
  await estimate.focus()
  const tooltip = page.getByRole('tooltip')
  await tooltip.getByText('The answer costs $50.00 per million tokens.').waitFor()
  await isAccessible(page, 'what the next request costs')
  await page.keyboard.press('Escape')
  await tooltip.waitFor({ state: 'detached' })
  // What is sent costs as much as nothing, until the next message is begun.
  model.willSay('Done.')
  await session.say('hello')
  await session.answer(1)
  await estimate.waitFor({ state: 'detached' })
})
