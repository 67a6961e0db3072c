/** What was used, and what it cost: the page, the gauge and the card. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()
after(() => model.close())

const model = await ModelStandIn.start()
/** The stand-in's model at a price. */
const PRICED = { ...model.env, LLM_PROVIDER: 'openai', OPENAI_API_KEY: 'sk', SPL_LLM_MODEL: 'gpt-4o' }

story('what was used is a table and two charts, and the address keeps the filters', { env: PRICED }, async ({ app, page, session }) => {
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByText('No usage from').waitFor()
  await isAccessible(page, 'usage of nothing')

  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  for (const [at, text] of ['What is it?', 'And now?'].entries()) {
    model.willSay('This.')
    await session.say(text)
    await session.answer(at + 1)
  }
  await page.getByRole('link', { name: 'Usage' }).click()
  const table = page.getByRole('table', { name: 'Usage by Day', exact: true })
  // Two requests of 11 and 7 tokens, at 2.50 and 10 dollars a million.
  await table.getByRole('row', { name: 'Total 2 22 0 14 36 $0.00020' }).waitFor()
  for (const name of ['Cost by day and model', 'Tokens by day and kind']) {
    const figure = page.getByRole('region').or(page.locator('section')).filter({ has: page.getByRole('heading', { name }) })
    await figure.getByRole('img', { name: new RegExp(`^${name}\\. Highest day`) }).waitFor()
    await figure.getByText('Show as a table').click()
    await figure.getByRole('table', { name }).waitFor()
    const file = await figure.getByRole('link', { name: `Download as CSV: ${name}` }).getAttribute('href')
    const answer = await page.request.get(file)
    assert.match(answer.headers()['content-type'], /^text\/csv/)
    assert.match(await answer.text(), /gpt-4o|^day,/)
  }
  await isAccessible(page, 'usage')

  // By keyboard: another grouping, and another order.
  const grouping = page.getByLabel('Group by', { exact: true })
  await grouping.focus()
  await grouping.selectOption('Model')
  const models = page.getByRole('table', { name: 'Usage by Model' })
  await models.getByRole('row', { name: 'openai/gpt-4o 2' }).waitFor()
  await models.getByRole('button', { name: 'Total tokens' }).focus()
  await page.keyboard.press('Enter')
  await models.getByRole('columnheader', { name: 'Total tokens', exact: false }).and(page.locator('[aria-sort="descending"]')).waitFor()
  await until('the address says so', () => new URL(page.url()).search === '?by=model&sort=tokens&order=desc')
  await page.reload()
  await models.getByRole('row', { name: 'openai/gpt-4o 2' }).waitFor()
  assert.equal(await page.getByLabel('Group by', { exact: true }).inputValue(), 'model')
  await page.getByLabel('Group by', { exact: true }).selectOption('Session')
  await page.getByRole('link', { name: 'What is it?' }).last().waitFor()
  await page.getByLabel('Days', { exact: true }).selectOption('Other days')
  await page.getByLabel('From', { exact: true }).fill('2020-01-01')
  await page.getByLabel('To', { exact: true }).fill('2020-01-31')
  await page.getByText('No usage from Jan 1, 2020 to Jan 31, 2020.').waitFor()
})

story('the gauge says what the last request read, and the card what going on costs', { env: PRICED }, async ({ page, session }) => {
  model.willCall(['write_file', { path: 'notes/one.txt', content: 'one' }])
  await session.say('Write it down')
  await session.tray.getByText('Next step: about $0.00012').waitFor()
  const gauge = page.locator('.header .gauge button')
  await gauge.focus()
  const parts = page.getByRole('tooltip').getByRole('table', { name: 'Last request' })
  await parts.getByRole('row', { name: 'Tool definitions: sandbox' }).waitFor()
  await page.keyboard.press('Escape')
  await parts.waitFor({ state: 'hidden' })
  await gauge.hover()
  await gauge.blur()
})

story('a price that nobody knows is unknown, and never nothing', { env: model.env }, async ({ page, session }) => {
  model.willSay('This.')
  await session.say('What is it?')
  await session.answer()
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('row', { name: 'Total 1 11 0 7 18 unknown' }).waitFor()
  await page.getByText('1 request has no known price and is not in the cost.').waitFor()
  await page.getByText('No priced usage on these days.').waitFor()
  await page.getByText('Show as a table').first().click()
  await page.getByRole('table', { name: 'Cost by day and model' }).getByRole('cell', { name: 'unknown', exact: true }).waitFor()
})
