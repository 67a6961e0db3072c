/** Budgets on the page: they are seen before they bite, stop what goes beyond, and are raised in place. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()
after(() => model.close())

const model = await ModelStandIn.start()
/** 2.50 USD for a million tokens in, 10 USD out. */
const PRICED = { ...model.env, LLM_PROVIDER: 'openai', OPENAI_API_KEY: 'sk', SPL_LLM_MODEL: 'gpt-4o', SPL_SANDBOX: 'none' }
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/** Sets one as an admin does, at Usage; comes back to a new session. */
async function setBudget({ app, page, session }, whose, dollars, isHard = true) {
  await page.goto(`${app.url}/usage`)
  const panel = page.getByRole('region', { name: 'Budgets' })
  await panel.getByLabel('For', { exact: true }).selectOption(whose)
  await panel.getByLabel('US dollars').fill(dollars)
  if (!isHard) await panel.getByLabel('Refuse requests beyond the budget').uncheck()
  await panel.getByRole('button', { name: 'Set budget' }).click()
  await panel.getByRole('button', { name: /^Remove the budget/ }).waitFor()
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
}

/** What whoever cannot see the page was told last. */
const told = (page, words) => until(`"${words}" is told`, () => page.evaluate((words) => [...document.querySelectorAll('[aria-live=polite]')].some((region) => region.textContent.includes(words)), words))

story('a soft budget warns in words while the page is open, and refuses nothing', { env: PRICED }, async (house) => {
  const { page, session } = house
  await setBudget(house, 'Each person', '0.02', false)
  const near = page.getByRole('region', { name: 'Budgets that are nearly used up' })
  // 0.0175 USD, which is more than 80 %.
  model.willSay('This.', [1_000, 1_500])
  await session.say('What is it?')
  await session.answer()
  const words = 'Each person, each month: Only $0.0025 left of $0.020. This is only a warning; nothing is refused.'
  await near.getByText(words).waitFor()
  await told(page, words)
  await page.locator('.header').getByText('Only $0.0025 left of $0.020').waitFor()
  assert.equal(await near.getByRole('button', { name: 'Raise the budget' }).count(), 0, 'nothing has to be raised')
  await isAccessible(page, 'a budget that warns', async (width) => {
    // A narrow screen has no room for it in the header, so the words above the message say it.
    if (width === 320) assert.ok(await near.isVisible())
  })
  await page.setViewportSize({ width: 1280, height: 800 })

  model.willSay('That.', [1_000, 1_500])
  await session.say('And now?')
  assert.equal(await session.answer(2), 'That.')
  await near.getByText('$0.020 used up. This is only a warning; nothing is refused.').waitFor()
  await near.getByRole('button', { name: 'Hide' }).click()
  await near.waitFor({ state: 'hidden' })
})

story('a hard budget cuts an answer where it ends; raised in place, the model goes on', { env: PRICED }, async (house) => {
  const { page, session } = house
  await setBudget(house, 'Each session', '0.02')
  model.willSay('This.', [1_000, 500])
  await session.say('What is it?')
  await session.answer()
  // 0.0125 USD are left, which is some 1,200 tokens.
  model.willStream(Array(6_000).fill('word '), { usage: [1_000, 6_000] })
  await session.say('Tell me everything')
  const ending = session.log.locator('.ending')
  await ending.getByText(/budget of this session of 0\.02 USD/).waitFor()
  await told(page, 'Anything beyond it is refused.')
  await isAccessible(page, 'an answer that a budget cut')
  await page.setViewportSize({ width: 1280, height: 800 })
  const asked = model.requests.at(-1).max_tokens
  assert.ok(asked > 1_000 && asked < 1_300, `the provider is told where the answer ends: ${asked}`)

  const amount = ending.getByLabel('Raise to, in US dollars: Each session')
  assert.equal(await amount.inputValue(), '0.04')
  await amount.fill('1')
  await amount.press('Enter')
  await told(page, 'The budget is raised.')
  await amount.waitFor({ state: 'hidden' })
  model.willSay('And so on.')
  await ending.getByRole('button', { name: 'Continue' }).click()
  assert.equal(await session.answer(3), 'And so on.')
  assert.equal(model.requests.at(-1).max_tokens, undefined)
})

story('a phone: a budget that is used up says so before and after, and the turn goes on once it is raised', { env: PRICED, context: PHONE }, async (house) => {
  const { page, session } = house
  const say = async (text) => {
    await session.composer.fill(text)
    await page.getByRole('button', { name: 'Send' }).tap()
  }
  await setBudget(house, 'Each session', '0.02')
  const near = page.getByRole('region', { name: 'Budgets that are nearly used up' })
  // 0.0195 USD: nothing can be asked with the rest.
  model.willSay('This.', [1_000, 1_700])
  await say('What is it?')
  await session.answer()
  await near.getByText('Anything beyond it is refused.').waitFor()
  await say('And now?')
  const failed = session.log.locator('.note.failed')
  await failed.getByText(/budget of this session of 0\.02 USD is used up/).waitFor()
  await isAccessible(page, 'a budget that is used up')
  await page.setViewportSize(PHONE.viewport)
  await failed.getByLabel('Raise to, in US dollars: Each session').fill('0.5')
  const raise = failed.getByRole('button', { name: 'Raise', exact: true })
  const { height } = await raise.boundingBox()
  assert.ok(height >= 44, `a finger meets it: ${height}`)
  await raise.tap()
  await near.waitFor({ state: 'hidden' })
  model.willSay('That.')
  await failed.getByRole('button', { name: 'Retry', exact: true }).tap()
  assert.equal(await session.answer(2), 'That.')
})

story('usage tells turns and titles apart', { env: { ...PRICED, SPL_CHAT_TITLES: 'model' } }, async ({ page, session }) => {
  model.willSay('With a needle').willSay('Mending a sail')
  await session.say('How do I mend a sail?')
  await page.getByRole('heading', { name: 'Mending a sail', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByLabel('Group by', { exact: true }).selectOption('Purpose')
  const table = page.getByRole('table', { name: 'Usage by Purpose' })
  await table.getByRole('row', { name: 'Turns 1 11' }).waitFor()
  await table.getByRole('row', { name: 'Session titles 1 11' }).waitFor()
})
