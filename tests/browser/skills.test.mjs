/** Skills: what is wrong with one is said, another is kept, switched, looked at and used. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const model = await ModelStandIn.start()
after(() => model.close())

const file = (text) => ({ name: 'SKILL.md', mimeType: 'text/markdown', buffer: Buffer.from(text) })
const WRONG = '---\nname: PDF Forms\nallowed-tools: "*"\n---\nFill them in.\n'
const GOOD = '---\nname: pdf-forms\ndescription: Fills in PDF forms.\nallowed-tools: execute_command\n---\n\n# Forms\n\nFill <b>them</b> in.\n'

story('a skill is refused with all its problems, kept, looked at, used in a session and switched off', { env: { ...model.env } }, async ({ app, page, session }) => {
  await page.goto(`${app.url}/settings/skills`)
  const skills = page.locator('#skills')
  await skills.getByText('No skills yet. Drop').waitFor()
  await skills.getByLabel('Choose a file', { exact: true }).setInputFiles(file(WRONG))
  const problems = skills.getByRole('alert')
  await problems.getByText('This is not a valid skill yet:').waitFor()
  const told = await problems.innerText()
  for (const word of [/PDF Forms/, /description: it is missing/, /Add a line `description/, /grants nothing/]) assert.match(told, word)
  await isAccessible(page, 'the problems of a skill')

  await skills.getByLabel('Choose a file', { exact: true }).setInputFiles(file(GOOD))
  const row = skills.getByRole('list', { name: 'Mine' }).getByRole('listitem').first()
  await row.getByText('Fills in PDF forms.').waitFor()
  assert.match(await row.innerText(), /Sepal ignores this/)
  await row.getByRole('button', { name: 'View pdf-forms' }).click()
  await row.getByText('Fill <b>them</b> in.').waitFor()
  await isAccessible(page, 'a skill that is looked at')

  model.willCall(['use_skill', { name: 'pdf-forms' }]).willSay('Filled in.')
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.say('fill it in')
  await until('it is answered', async () => (await session.answers().last().innerText().catch(() => '')).includes('Filled in.'))
  await session.row('use_skill').waitFor()
  assert.match(JSON.stringify(model.requests[0].messages[0]), /pdf-forms.*Fills in PDF forms/)
  assert.match(JSON.stringify(model.requests[1].messages), /Fill <b>them<\/b> in/)

  await page.goto(`${app.url}/settings/skills`)
  const isOn = page.getByRole('checkbox', { name: 'pdf-forms in my sessions' })
  await isOn.uncheck()
  await until('it is off', async () => {
    const { skills: kept } = await (await page.request.get(`${app.url}/api/skills`)).json()
    return kept[0].enabled === false
  })
})

story('on the phone a skill is written for the team, and removed', { context: PHONE, env: { ...model.env } }, async ({ app, page }) => {
  await page.goto(`${app.url}/settings/skills`)
  const skills = page.locator('#skills')
  await skills.getByRole('button', { name: 'Write one for the team' }).click()
  await skills.getByLabel('Name').fill('notes')
  await skills.getByLabel(/^Description/).fill('Takes notes: short ones.')
  await skills.getByLabel('Instructions').fill('# Notes')
  await until('the page does not scroll sideways', () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
  await isAccessible(page, 'the form of a skill')
  await skills.getByRole('button', { name: 'Save' }).click()
  const row = skills.getByRole('list', { name: 'Team' }).getByRole('listitem').first()
  await row.getByText('Takes notes: short ones.').waitFor()
  await row.getByRole('checkbox', { name: 'notes for the whole team' }).waitFor()
  await row.getByRole('button', { name: 'Remove notes' }).click()
  await skills.getByText('The team has no skills yet.').waitFor()
})
