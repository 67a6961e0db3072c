/** Sessions are found by what was said in them, and kept in order. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const model = await ModelStandIn.start()
after(() => model.close())

/** Types until the index has what was said a moment ago. */
async function search(page, text) {
  await page.keyboard.press('Control+K')
  const field = page.getByRole('combobox', { name: 'Search and commands' })
  await until(`"${text}" is found`, async () => {
    await field.fill('')
    await field.fill(text)
    await page.getByText(/^\d+ results?$|^No results\.$/).first().waitFor({ state: 'attached' })
    return (await page.getByRole('option').filter({ has: page.locator('mark') }).count()) > 0
  })
  return field
}

story('a word of a long conversation leads to its place, with the keyboard alone', { env: model.env }, async ({ page, session }) => {
  model.willSay('The first answer names a pelican.')
  await session.say('Name a bird')
  await session.answer()
  for (let turn = 0; turn < 12; turn += 1) {
    model.willSay(`Answer ${turn}. ${'More words of it.\n\n'.repeat(12)}`)
    await session.say(`Question ${turn}`)
    await session.says(`Answer ${turn}.`).first().waitFor()
  }
  await page.goto(new URL('/s/new', page.url()).href)
  await session.isReady()

  const field = await search(page, 'pelic')
  assert.equal(await page.getByRole('option').locator('mark').first().textContent(), 'pelican')
  await field.press('ArrowDown')
  await field.press('ArrowUp')
  await field.press('Enter')
  const place = page.locator('.marked').filter({ hasText: 'pelican' })
  await place.waitFor()
  await until('the place is in view', () => place.evaluate((row) => {
    const { top, bottom } = row.getBoundingClientRect()
    return top >= 0 && bottom <= innerHeight
  }))

  // Within the session, from the newest place to older ones.
  await page.keyboard.press('Control+F')
  const find = page.getByRole('searchbox', { name: 'Find in this session' })
  await find.fill('question')
  await page.getByText('12 of 12').waitFor()
  await page.locator('.marked').filter({ hasText: 'Question 11' }).waitFor()
  await find.press('Enter')
  await page.getByText('1 of 12').waitFor()
  await page.locator('.marked').filter({ hasText: 'Question 0' }).waitFor()
  await find.press('Escape')
  await find.waitFor({ state: 'detached' })
})

story('sessions are pinned, archived and deleted, several at once, and come back', { env: model.env }, async ({ page, session, app }) => {
  for (const word of ['alpha', 'beta', 'gamma']) {
    model.willSay(`This is ${word}.`)
    await page.goto(`${app.url}/s/new`)
    await session.isReady()
    await session.say(word)
    await session.answer()
  }
  const rail = page.getByRole('navigation', { name: 'Sessions' })
  const link = (name) => rail.getByRole('link', { name, exact: true })
  const menu = async (name, item) => {
    await rail.getByRole('button', { name: `Menu of ${name}` }).click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }
  await menu('alpha', 'Pin')
  await rail.getByRole('heading', { name: 'Pinned' }).waitFor()
  await menu('beta', 'Archive')
  await link('beta').waitFor({ state: 'detached' })
  await rail.getByRole('button', { name: 'Archived' }).click()
  await link('beta').waitFor()
  await rail.getByRole('button', { name: 'Archived' }).click()
  await link('alpha').waitFor()

  await menu('gamma', 'Select several')
  await rail.getByRole('checkbox', { name: 'Select alpha' }).click()
  await rail.getByText('2 selected').first().waitFor()
  await rail.getByRole('button', { name: 'Delete', exact: true }).click()
  await link('alpha').waitFor({ state: 'detached' })
  await link('gamma').waitFor({ state: 'detached' })
  await rail.getByRole('button', { name: 'Undo' }).click()
  await link('alpha').waitFor()
  await link('gamma').waitFor()

  // The server deletes, whatever becomes of the page.
  await menu('gamma', 'Delete')
  await link('gamma').waitFor({ state: 'detached' })
  await page.reload()
  await link('alpha').waitFor()
  assert.equal(await link('gamma').count(), 0)
})
