/** What calls changed in the files: shown below the call with its differences, undone on wish, and told to the model. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

const model = await ModelStandIn.start()
after(() => model.close())
const env = { ...model.env, SPL_SANDBOX: 'bubblewrap' }

async function write(session, path, content) {
  model.willCall(['write_file', { path, content }]).willSay(`Wrote ${content.split('\n')[0]}`)
  await session.say(`write ${path}`)
  await session.counts('1 call waits for you.')
  await session.press(`Approve: ${await session.heading()}`)
  await session.says(`Wrote ${content.split('\n')[0]}`).waitFor()
}

story('a change of a call is compared below it and undone, and the model is told', { env }, async ({ page, session }) => {
  await write(session, 'plan.md', 'first\nsame\n')
  await write(session, 'plan.md', 'second\nsame\n')
  const changed = page.getByRole('button', { name: '1 file changed' })
  await changed.nth(1).waitFor()
  assert.equal(await changed.count(), 2)
  await changed.nth(1).click()
  await page.getByRole('button', { name: 'Compare plan.md' }).click()
  const row = page.locator('.changed').nth(1)
  await row.getByText('first').waitFor()
  await row.getByText('second').waitFor()
  await isAccessible(page, 'the changes of a call')

  await row.getByRole('button', { name: /^Undo/ }).click()
  const form = page.getByRole('region', { name: 'Undo' })
  await form.getByText('This undoes the changes to 1 file.').waitFor()
  await form.getByText('reverted').last().waitFor()
  await form.getByRole('button', { name: 'Undo these changes' }).click()
  await form.getByText('Undone. Reverted plan.md.').waitFor()

  model.willCall(['execute_command', { command: 'cat plan.md' }]).willSay('Read it')
  await session.say('what is the plan?')
  await session.counts('1 call waits for you.')
  await session.press(`Approve: ${await session.heading()}`)
  await session.says('Read it').waitFor()
  const asked = JSON.stringify(model.requests.at(-1))
  assert.ok(asked.includes('first\\\\nsame') || asked.includes('first\\nsame'), asked.slice(-2000))
})

story('the history of the files says who changed what, also where there is little room', { env }, async ({ page, session }) => {
  await write(session, 'notes.txt', 'one\n')
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'Files', exact: true }).click()
  const panel = page.getByRole('complementary', { name: 'Details' })
  await panel.getByRole('tab', { name: 'Changes' }).click()
  await panel.getByText('A call').waitFor()
  await panel.getByText('1 file changed').waitFor()
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)
  assert.equal(wide, false, 'nothing is wider than the screen')
  await isAccessible(page, 'the history')
})
