/** Assistants: one is written, a session starts with it, and goes on with a newer version when its owner wants that. */
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

const isAnswered = (session, words) => until(`it says ${words}`, async () => (await session.answers().last().innerText().catch(() => '')).includes(words))

story('an assistant is written, begins a session with an opening prompt, and is changed under it', { env: { ...model.env } }, async ({ app, page, session }) => {
  await page.goto(`${app.url}/settings/assistants`)
  const section = page.locator('#assistants')
  await section.getByText('No assistants yet.', { exact: true }).waitFor()
  await section.getByRole('button', { name: 'New assistant', exact: true }).click()
  await section.getByLabel('Name', { exact: true }).fill('Writer')
  await section.getByLabel('Description').fill('Writes short texts.')
  await section.getByLabel('Instructions for the model').fill('Speak like a pirate.')
  await section.getByRole('button', { name: 'Add an opening prompt' }).click()
  await section.getByLabel('Opening prompt 1', { exact: true }).fill('Write a poem')
  await section.getByRole('button', { name: 'Add a rule' }).click()
  await section.getByLabel('Effect of rule 1').selectOption('deny')
  await section.getByLabel('Tool of rule 1').fill('execute_command')
  await section.getByLabel('Add a file').setInputFiles({ name: 'style.txt', mimeType: 'text/plain', buffer: Buffer.from('Only short words.') })
  await section.getByRole('button', { name: 'Remove style.txt' }).waitFor()
  await isAccessible(page, 'the form of an assistant')
  await section.getByRole('button', { name: 'Save' }).click()
  await section.getByText('Writes short texts.').waitFor()
  await isAccessible(page, 'the assistants')

  // It is chosen where a session begins.
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await page.getByRole('combobox', { name: 'Assistant' }).selectOption({ label: 'Writer' })
  await page.getByText('Assistant: Writer, version 1').waitFor()
  await isAccessible(page, 'an empty session with an assistant')
  model.willSay('Arr, a poem.')
  await page.getByRole('button', { name: 'Write a poem' }).click()
  await isAnswered(session, 'Arr, a poem.')
  const first = JSON.stringify(model.requests.at(-1).messages)
  assert.match(first, /Speak like a pirate/)
  assert.match(first, /Only short words/)

  // A newer version does not change the session until its owner wants that.
  const at = await session.address()
  await page.goto(`${app.url}/settings/assistants`)
  await section.getByRole('button', { name: 'Edit Writer' }).click()
  await section.getByLabel('Instructions for the model').fill('Speak like a poet.')
  await section.getByRole('button', { name: 'Save' }).click()
  await section.getByText(/^Version 2 of/).waitFor()
  await page.goto(at)
  await page.getByText('There is a newer version (2).').waitFor()
  await page.getByRole('button', { name: 'Use the newer version' }).click()
  await page.getByText('Assistant: Writer, version 2').waitFor()
  model.willSay('Roses.')
  await session.say('another')
  await isAnswered(session, 'Roses.')
  assert.match(JSON.stringify(model.requests.at(-1).messages), /Speak like a poet/)

  // An old version comes back as the newest.
  await page.goto(`${app.url}/settings/assistants`)
  await section.getByRole('button', { name: 'Versions of Writer' }).click()
  await section.getByRole('button', { name: 'Restore version 1' }).click()
  await section.getByText('repeats version 1').waitFor()
  await isAccessible(page, 'the versions of an assistant')

  // Without it, the session says what it can still do.
  await section.getByRole('button', { name: 'Delete Writer' }).click()
  await section.getByRole('button', { name: 'Delete now' }).click()
  await section.getByText('No assistants yet.', { exact: true }).waitFor()
  await page.goto(at)
  await page.getByText('This session can be read, but starts no new turn.').waitFor()
})

story('on the phone an assistant is exported, imported for the team, and shared', { context: PHONE, env: { ...model.env } }, async ({ app, page }) => {
  await page.goto(`${app.url}/settings/assistants`)
  const section = page.locator('#assistants')
  await section.getByRole('button', { name: 'New assistant', exact: true }).click()
  await section.getByLabel('Name', { exact: true }).fill('Writer')
  await isAccessible(page, 'the form of an assistant on the phone')
  await section.getByRole('button', { name: 'Save' }).click()
  const way = await section.getByRole('link', { name: 'Export Writer' }).getAttribute('href')
  const file = await (await page.request.get(new URL(way, `${app.url}/`).href)).body()
  await section.getByLabel('Import for the team').setInputFiles({ name: 'assistant.json', mimeType: 'application/json', buffer: file })
  const team = section.getByRole('list', { name: 'Team' })
  await team.getByText('Writer').waitFor()
  await team.getByRole('button', { name: 'Share Writer' }).click()
  await team.getByLabel('What Everybody in the team may do').selectOption('see')
  await until('everybody only sees it', async () => {
    const { items } = await (await page.request.get(`${app.url}/api/assistants`)).json()
    const copy = items.find((item) => item.scope === 'team')
    const { items: entries } = await (await page.request.get(`${app.url}/api/assistants/${copy.id}/access`)).json()
    return entries.length === 1 && entries[0].level === 'see'
  })
  await team.getByLabel('Name of a person').fill('nobody')
  await team.getByRole('button', { name: 'Add', exact: true }).click()
  await team.getByText('there is no person `nobody` here').waitFor()
  await isAccessible(page, 'who may use an assistant')
})
