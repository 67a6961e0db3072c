/** The audit: who did what and who approved what, with filters in the address, a check and an export. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()
after(() => model.close())

const model = await ModelStandIn.start()

story('an owner finds who approved a call, checks the audit and takes it along', { env: { ...model.env, SPL_SANDBOX: 'bubblewrap' } }, async ({ app, page, session }) => {
  model.willCall(['write_file', { path: 'a.txt', content: 'x' }]).willSay('Written.')
  await session.say('Write a file')
  await session.counts('1 call waits for you.')
  await session.press(`Approve: ${await session.heading()}`)
  await session.answer(1)

  await page.goto(`${app.url}/admin/audit`)
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  const records = page.getByRole('list', { name: 'Records' })
  await records.getByText('sign_in.succeeded').first().waitFor()
  await isAccessible(page, 'audit')

  // By keyboard: a filter, which the address keeps.
  const acts = page.getByLabel('Action', { exact: true })
  await acts.focus()
  await acts.selectOption('Calls')
  await page.getByLabel('Verdict', { exact: true }).selectOption('Approved')
  await until('the address says so', () => new URL(page.url()).search.includes('act=call'))
  await page.reload()
  const decided = records.getByRole('listitem').filter({ hasText: 'call.decided' })
  await decided.getByText('write_file').first().waitFor()
  await decided.locator('summary').focus()
  await page.keyboard.press('Enter')
  await decided.getByText('"verdict": "approved"').waitFor()

  await page.getByRole('button', { name: 'Verify' }).click()
  await page.getByRole('status').filter({ hasText: 'No problems found' }).waitFor()

  const file = await page.getByRole('link', { name: 'CSV' }).getAttribute('href')
  const answer = await page.request.get(file)
  assert.match(answer.headers()['content-type'], /^text\/csv/)
  assert.match(await answer.text(), /call\.decided/)

  await page.getByLabel('Tool', { exact: true }).fill('nothing_like_it')
  await page.keyboard.press('Enter')
  await page.getByText('No records match these filters.').waitFor()
  await isAccessible(page, 'audit without a record')
})
