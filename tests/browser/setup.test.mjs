/** What is set up for all sessions: providers, MCP servers, the model of a session, and what it no longer reads. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

story('a provider is tried, added, chosen for a session and removed', {}, async ({ app, page, session }) => {
  const model = await ModelStandIn.start()
  try {
    await page.goto(`${app.url}/admin/providers`)
    await page.getByRole('heading', { name: 'Model providers' }).waitFor()
    await isAccessible(page, 'the providers')
    await page.getByRole('button', { name: 'Add a provider' }).click()
    await page.getByRole('radio', { name: 'Ollama' }).check()
    await page.getByLabel('Address', { exact: true }).fill(model.env.OPENAI_BASE_URL)
    await page.getByText('More', { exact: true }).click()
    await page.getByRole('radio', { name: 'Everyone on this installation' }).check()
    await page.getByLabel('API key').fill('sk-very-secret')
    await page.getByRole('button', { name: 'Test', exact: true }).last().click()
    await page.getByText('It answers').waitFor()
    await isAccessible(page, 'a tested provider')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'ollama' }).waitFor()
    assert.ok(!(await page.content()).includes('sk-very-secret'), 'the key is nowhere on the page')

    // The first that answers is what new sessions begin with.
    await page.getByText('New sessions begin with it.').waitFor()
    await page.goto(`${app.url}/s/new`)
    await session.isReady()
    await page.getByRole('button', { name: /^Model: stub/ }).click()
    await page.getByText('New sessions start with stub (ollama).').waitFor()
    // Another one is chosen here, and then for all that come.
    await page.getByRole('searchbox', { name: 'Find a model' }).fill('scripted')
    await page.getByRole('group', { name: 'Models' }).getByRole('button', { name: 'scripted' }).first().waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: /^Model: scripted/ }).click()
    await page.getByRole('button', { name: 'Use scripted for my new sessions' }).click()
    await page.getByText('You chose it.').waitFor()
    await isAccessible(page, 'the picker with a choice for new sessions')
    await page.goto(`${app.url}/s/new`)
    await session.isReady()
    await page.getByRole('button', { name: /^Model: scripted/ }).click()
    await page.getByRole('button', { name: "Use the team's default instead" }).click()
    await page.getByText('New sessions start with stub (ollama).').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: /^Model: scripted/ }).click()
    await page.getByRole('searchbox', { name: 'Find a model' }).fill('ollama')
    await page.getByRole('group', { name: 'Models' }).getByRole('button', { name: 'stub' }).first().waitFor()
    await isAccessible(page, 'the model picker')
    await page.keyboard.press('Enter')
    await session.says('From the next request').waitFor()
    model.willSay('Hello from the added provider')
    await session.say('hello')
    await session.says('Hello from the added provider').waitFor()

    await page.goto(`${app.url}/admin/providers`)
    await page.getByRole('button', { name: 'Remove ollama' }).click()
    await page.getByRole('button', { name: 'Remove it' }).click()
    await page.getByRole('heading', { name: 'ollama' }).waitFor({ state: 'detached' })
  } finally {
    model.close()
  }
})

story('how much models think and how long a cache keeps is said in the form, and shown again', {}, async ({ app, page }) => {
  await page.goto(`${app.url}/admin/providers`)
  await page.getByRole('button', { name: 'Add a provider' }).click()
  await page.getByRole('radio', { name: 'Anthropic' }).check()
  await page.getByLabel('API key').fill('sk-ant-secret')
  await page.getByText('More', { exact: true }).click()
  await page.getByLabel('Thinking by model').fill('claude-opus-4-6=much')
  await page.getByRole('radio', { name: '1 hour' }).check()
  await isAccessible(page, 'the further fields of a provider')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('“claude-opus-4-6=much” is not a model=level pair.').waitFor()
  await page.getByLabel('Thinking by model').fill('claude-opus-4-6=low')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'anthropic' }).waitFor()

  await page.reload()
  await page.getByRole('button', { name: 'Change anthropic' }).click()
  assert.equal(await page.getByLabel('Thinking by model').inputValue(), 'claude-opus-4-6=low')
  assert.ok(await page.getByRole('radio', { name: '1 hour' }).isChecked())
})

story('a server is pasted, tried, added, switched and removed', {}, async ({ app, page }) => {
  await page.goto(`${app.url}/servers`)
  await page.getByRole('heading', { name: 'MCP servers' }).waitFor()
  await isAccessible(page, 'the servers')
  await page.getByRole('link', { name: 'Add a server' }).click()
  await page.getByLabel('Configuration, command line or address').fill('no-such-program --serve')
  await page.getByText('Recognised: a command.').waitFor()
  await isAccessible(page, 'a new server')
  await page.getByRole('button', { name: 'Test' }).click()
  await page.getByText('The server does not work.').waitFor()
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('link', { name: 'no-such-program' }).click()
  await page.getByRole('checkbox', { name: 'On' }).uncheck()
  await page.getByText(/^off/).waitFor()
  await isAccessible(page, 'a server')
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('button', { name: 'Remove it' }).click()
  await page.getByText('Only the built-in server so far.').waitFor()
})

story('what looks like a secret is sealed, a server is restarted, and its day is told in words', {}, async ({ app, page }) => {
  await page.goto(`${app.url}/servers/new`)
  const pasted = { mcpServers: { tracker: { command: 'no-such-program', env: { TRACKER_TOKEN: 'swordfish-7', LANG: 'C' } } } }
  await page.getByLabel('Configuration, command line or address').fill(JSON.stringify(pasted))
  const secret = page.getByLabel('TRACKER_TOKEN', { exact: true })
  assert.equal(await secret.inputValue(), 'swordfish-7')
  assert.equal(await secret.getAttribute('type'), 'password')
  await page.getByText('Can be read by: this server only.').waitFor()
  assert.match(await page.getByLabel('Environment').inputValue(), /LANG=C\nTRACKER_TOKEN=\$\{secret:TRACKER_TOKEN\}/)
  await isAccessible(page, 'a new server with a secret')
  // Plain text is a choice that can be taken back.
  await page.getByRole('checkbox', { name: 'Keep TRACKER_TOKEN sealed' }).uncheck()
  assert.match(await page.getByLabel('Environment').inputValue(), /TRACKER_TOKEN=swordfish-7/)
  await page.getByRole('checkbox', { name: 'Keep TRACKER_TOKEN sealed' }).check()
  await page.getByLabel('Environment').fill('TRACKER_TOKEN=${secret:TRACKER_TOKEN}\nAPI_KEY=typed-by-hand')
  await page.getByLabel('Environment').blur()
  assert.equal(await page.getByLabel('API_KEY', { exact: true }).inputValue(), 'typed-by-hand')
  await page.getByRole('button', { name: 'Add', exact: true }).click()

  await page.getByRole('link', { name: 'tracker' }).click()
  await page.getByText('Can be read by: this server only.').waitFor()
  assert.equal(await page.getByLabel('TRACKER_TOKEN', { exact: true }).inputValue(), '')
  for (const value of ['swordfish-7', 'typed-by-hand']) {
    assert.ok(!(await page.content()).includes(value), 'no value is on the page')
  }
  await page.getByLabel('TRACKER_TOKEN', { exact: true }).fill('another')
  await page.getByRole('button', { name: 'Replace the secret TRACKER_TOKEN' }).click()
  await page.getByText('TRACKER_TOKEN is stored, sealed.').waitFor()
  await page.getByRole('button', { name: 'Remove the secret TRACKER_TOKEN' }).click()
  await page.getByText('Not set. The server does not start without it.').waitFor()

  await page.getByRole('button', { name: 'Restart' }).click()
  await page.getByText('It was not running.').waitFor()
  await page.getByText(/^Answered 0 of \d+ times?\.$/).waitFor()
  await page.getByText('By half hour').click()
  await page.getByText(/: answered 0, failed \d+$/).waitFor()
  await page.getByRole('button', { name: 'Show the log' }).click()
  await page.getByRole('button', { name: 'Reload' }).waitFor()
  await isAccessible(page, 'a server with a secret and its day')
})

story('an entry is changed in place; what goes elsewhere takes no value along that was not given again', {}, async ({ app, context, page }) => {
  const { csrfToken } = await (await context.request.get(`${app.url}/api/auth/me`)).json()
  const ask = async (method, path, data) => {
    const answer = await context.request.fetch(`${app.url}/api/mcp${path}`, { method, data, headers: { 'X-CSRF-Token': csrfToken } })
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`)
    return answer.status() === 204 ? null : answer.json()
  }
  const config = { command: 'no-such-program', args: ['-c', 'one\ntwo'], env: { LANG: 'C', TRACKER_TOKEN: '${secret:TRACKER_TOKEN}' }, timeout: 7 }
  await ask('POST', '/add', { name: 'tracker', config, secrets: { TRACKER_TOKEN: 'swordfish-7' } })
  const patches = []
  page.on('request', (request) => {
    if (request.method() === 'PATCH') patches.push(request.postDataJSON())
  })
  const edit = page.getByRole('button', { name: 'Edit tracker' })
  const form = page.getByRole('form', { name: 'Edit tracker' })
  const field = (label) => form.getByLabel(label, { exact: true })
  const isFocused = (what) => until('the focus is there', () => what.evaluate((it) => it === document.activeElement))

  await page.goto(`${app.url}/servers/tracker`)
  await edit.focus()
  await page.keyboard.press('Enter')
  await isFocused(field('Program'))
  assert.equal(await field('Arguments').inputValue(), '-c\n"one\\ntwo"')
  assert.equal(await field('Environment').inputValue(), 'LANG=••••\nTRACKER_TOKEN=${secret:TRACKER_TOKEN}')
  await isAccessible(page, 'an entry that is changed')
  // Nothing was typed: nothing is asked.
  await page.keyboard.press('Escape')
  await isFocused(edit)
  await page.keyboard.press('Enter')
  await page.keyboard.type('-of-mine')
  await page.keyboard.press('Escape')
  await isFocused(form.getByRole('button', { name: 'Keep editing' }))
  await isAccessible(page, 'the question before typed text is left')
  await form.getByRole('button', { name: 'Discard' }).click()
  await isFocused(edit)

  // Somebody else changes another part while this one is open; both stay, and so do the values that are not shown.
  await edit.click()
  await field('Description').fill('fast')
  await ask('PATCH', '/tracker', { timeout: 9 })
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByText("Saved. Someone else's changes are kept: timeout.").waitFor()
  await isFocused(edit)
  assert.deepEqual(patches, [{ description: 'fast' }])
  const { config: kept, secrets } = await ask('GET', '/tracker')
  assert.deepEqual(kept.env, { LANG: '••••', TRACKER_TOKEN: '${secret:TRACKER_TOKEN}' })
  assert.deepEqual([kept.timeout, kept.description, kept.args, secrets], [9, 'fast', config.args, ['TRACKER_TOKEN']])

  // What both changed is said before one takes the place of the other.
  await edit.click()
  await field('Description').fill('mine')
  await ask('PATCH', '/tracker', { description: 'theirs', timeout: 11 })
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('Not saved yet. Someone else changed this entry').waitFor()
  await form.getByText('theirs').waitFor()
  assert.equal(await field('Description').inputValue(), 'mine')
  assert.equal(await field('Time limit of a call, in seconds').inputValue(), '11', 'what only they changed is shown')
  assert.equal((await ask('GET', '/tracker')).config.description, 'theirs')
  await isAccessible(page, 'an entry that somebody else changed meanwhile')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByText("Saved. Someone else's changes are kept: timeout.").waitFor()
  const both = (await ask('GET', '/tracker')).config
  assert.deepEqual([both.description, both.timeout], ['mine', 11])

  // What lets the program see more wants what is hidden again, as another program does.
  await edit.click()
  await field('Environment').fill('LANG=••••\nTRACKER_TOKEN=${secret:TRACKER_TOKEN}\nMODE=fast')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('Not changed. Fix the marked fields.').waitFor()
  assert.equal((await ask('GET', '/tracker')).config.env.MODE, undefined)
  await page.keyboard.press('Escape')
  await form.getByRole('button', { name: 'Discard' }).click()

  // Another program gets none of it.
  await edit.click()
  await field('Program').fill('another-program')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('Not changed. Fix the marked fields.').waitFor()
  await form.getByText('LANG was given for another address or program.').waitFor()
  await form.getByText('Type it again; saving removes the old one.').waitFor()
  await isFocused(field('Environment'))
  await isAccessible(page, 'a refused change')
  assert.deepEqual((await ask('GET', '/tracker')).secrets, ['TRACKER_TOKEN'])
  await field('Environment').fill('LANG=de\nTRACKER_TOKEN=${secret:TRACKER_TOKEN}')
  await field('TRACKER_TOKEN').fill('swordfish-8')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved. Sessions use it from their next request.').waitFor()
  const moved = await ask('GET', '/tracker')
  assert.deepEqual([moved.config.command, moved.config.env.MODE, moved.secrets], ['another-program', undefined, ['TRACKER_TOKEN']])
  assert.ok(!(await page.content()).includes('swordfish'), 'no value is on the page')

  // A phone is wide enough, and what is gone is said.
  await page.setViewportSize({ width: 320, height: 640 })
  await edit.click()
  await field('Arguments').fill('--gone')
  await ask('DELETE', '/tracker')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('Someone removed this server.').waitFor()
  await form.getByRole('button', { name: 'Cancel' }).click()
  await form.getByRole('button', { name: 'Discard' }).click()
  await page.getByText('There is no such server.').waitFor()
})

story(
  'a line says where the model stops reading, and the whole window is let in and out',
  { env: { SPL_CHAT_MAX_MESSAGES: '3', SPL_LLM_SCRIPTED_PACE_MS: '1' } },
  async ({ page, session }) => {
    for (const [index, text] of ['one', 'two', 'three'].entries()) {
      await session.say(text)
      await session.answer(index + 1)
    }
    const line = session.says('The model no longer reads 3 entries above this line.')
    await line.waitFor()
    await isAccessible(page, 'the line and its button')
    await page.getByRole('button', { name: 'Read as much as fits' }).click()
    await session.says('the model reads as much of the conversation as fits').waitFor()
    await line.waitFor({ state: 'detached' })
    await page.reload()
    await session.isReady()
    await page.getByRole('button', { name: 'Read only the newest part' }).click()
    await session.says('the model reads only the newest part').waitFor()
    await line.waitFor()
    await isAccessible(page, 'the line after the way back')
  },
)
