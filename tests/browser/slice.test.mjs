/** From the setup link to the final answer, as the first person of an installation goes it. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, PERSON, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

/** Stands for an Ollama that runs beside the gateway. */
const ollama = await ModelStandIn.start()
after(() => ollama.close())

story('the first session, from the setup link to the final answer', { isNew: true }, async ({ app, page, session, problems }) => {
  await page.goto(await app.setupLink())
  await page.getByRole('heading', { name: 'Step 1' }).or(page.getByText('1 of 3: You')).first().waitFor()
  assert.equal(new URL(page.url()).hash, '', 'the secret leaves the address')
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Create my account' }).click()
  await page.getByText('2 of 3: A model').waitFor()
  await page.getByText('The demo model follows a script').waitFor()
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('link', { name: 'Open a session' }).click()
  await session.isReady()

  await page.getByRole('button', { name: 'Make two files and show them' }).click()
  await session.log.getByText('I make two files').waitFor()
  await session.counts('2 of 2 waiting for you. Nothing runs until all are decided.')
  assert.equal(await session.heading(), 'Write notes/one.txt')
  await session.address()
  await page.getByRole('navigation', { name: 'Sessions' }).getByRole('link', { name: /Make two files/ }).waitFor()

  await session.press('Approve: Write notes/one.txt')
  await session.counts('1 of 2 waiting for you.')
  await session.tray.getByText('runs when the other call is decided').waitFor()
  assert.equal(await session.heading(), 'Write notes/two.txt')
  await session.press('Approve: Write notes/two.txt')

  // Both ran, and the model goes on by reading them.
  await session.press('Approve: Read notes/one.txt')
  await session.press('Approve: Read notes/two.txt')
  const answer = await session.answer()
  assert.match(answer, /The first note\./)
  assert.match(answer, /The second note\./)
  await session.isQuiet()
  const batches = session.log.getByRole('button', { name: 'Ran 2 calls: 2 done' })
  await until('two calls each are one line', async () => (await batches.count()) === 2)
  assert.equal(await session.row('Done').count(), 0)
  await batches.first().press('Enter')
  await batches.last().click()
  await until('four calls are done', async () => (await session.row('Done').count()) === 4)

  const first = session.row('write_file').first()
  await first.getByRole('button', { expanded: false }).click()
  await first.getByRole('heading', { name: 'Output' }).waitFor()
  await first.getByText('The first note.').first().waitFor()

  await page.locator('.facts').getByText('tokens').waitFor()
  await page.locator('.facts').getByRole('button', { name: 'Details' }).click()
  await page.getByRole('tab', { name: 'Cost' }).click()
  assert.match(page.url(), /\?panel=cost$/)
  const details = page.getByRole('tabpanel', { name: 'Cost' }).locator('dl.details')
  await details.getByText('Tokens', { exact: true }).waitFor()
  assert.match(await details.innerText(), /Tokens\s+[\d,]+/)

  const foreign = problems.requests.filter((url) => !url.startsWith(`${app.url}/`) && !url.startsWith('blob:'))
  assert.deepEqual(foreign, [], 'no request leaves the origin')
})

story('a model that runs beside the gateway is found, and answers with a call that is decided', { isNew: true, env: { SPL_LLM_LOCAL_SERVERS: `ollama=${ollama.env.OPENAI_BASE_URL}` } }, async ({ app, page, session }) => {
  await page.goto(await app.setupLink())
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Create my account' }).click()
  await page.getByText("A model server runs on Sepal's machine.").waitFor()
  const first = page.locator('.tile').first()
  assert.match(await first.innerText(), /Ollama\s+running, 1 model/)
  assert.ok(await first.getByRole('radio').isChecked())
  assert.deepEqual(ollama.requests, [], 'no prompt is sent before the person says so')
  await isAccessible(page, 'a model server that was found')

  ollama.willSay('OK').willCall(['write_file', { path: 'notes/one.txt', content: 'The first note.\n' }]).willSay('The note is there.')
  await page.getByRole('button', { name: 'Save and try' }).click()
  await page.getByText('stub by ollama').waitFor()
  await page.getByRole('link', { name: 'Try it' }).click()
  await session.isReady()
  await page.getByRole('button', { name: 'Make two files and show them' }).click()
  await session.press('Approve: Write notes/one.txt')
  assert.equal(await session.answer(), 'The note is there.')
  // The folder that it made is no file.
  await page.getByRole('button', { name: '1 file changed' }).waitFor()
})

story('text streams, and steering text waits as a chip that can be withdrawn', { env: { SPL_LLM_SCRIPTED_PACE_MS: '20' } }, async ({ session, page }) => {
  await session.say('stream: 150')
  await session.log.getByText('word5').waitFor()
  assert.equal(await session.answers().count(), 0, 'it is shown before it is finished')
  await session.say('and then this')
  const form = page.getByRole('form', { name: 'Message' })
  await form.getByText('Queued').waitFor()
  await form.getByRole('button', { name: 'Withdraw: and then this' }).click()
  await form.getByText('Queued').waitFor({ state: 'hidden' })
  const answer = await session.answer()
  assert.equal(answer.split(/\s+/).length, 150)
  assert.ok(!(await session.text()).join(' ').includes('and then this'))
})

story('failures say what happened, try again by themselves, and can be retried', { env: { SPL_LLM_RETRY_INITIAL_BACKOFF: '0.1' } }, async ({ session }) => {
  await session.say('fail: 429')
  assert.match(await session.answer(1), /This answer came through/)
  await session.say('fail: cut')
  assert.match(await session.answer(2), /This answer came through/)
  await session.say('fail: 500 always')
  await session.log.getByText('The provider does not answer.').waitFor()
  await session.log.getByRole('button', { name: 'Retry' }).click()
  await until('the failure is told again', async () => (await session.log.getByText('The provider does not answer.').count()) === 2)
})
