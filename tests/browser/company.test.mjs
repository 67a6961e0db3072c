/** A company from nothing: people come by a link and by their company's account, share an assistant, decide for each other, and read each other's sessions only by a right. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { ModelStandIn } from './support/model.mjs'
import { OpenIdProvider } from './support/openid.mjs'
import { elsewhere } from './support/people.mjs'
import { SessionView } from './support/session.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PASSWORD = 'another long password'
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const APPROVE = 'Approve: Run a command'
const model = await ModelStandIn.start()
const provider = await OpenIdProvider.start({ sub: '7', preferred_username: 'cleo', groups: ['audit'] })
after(() => model.close())
after(() => provider.close())

const env = { ...model.env, ...provider.env, SPL_OIDC_GROUPS: 'audit=Auditors' }

/** What a person's browser asks by REST. */
function restOf(app, context) {
  return async (method, path, data, status = 200) => {
    const me = await (await context.request.get(`${app.url}/api/auth/me`)).json()
    const answer = await context.request.fetch(`${app.url}${path}`, { method, headers: { 'X-CSRF-Token': me.csrfToken }, ...(data && { data }) })
    assert.equal(answer.status(), status, `${method} ${path}: ${await answer.text()}`)
    return answer.json().catch(() => null)
  }
}

/** Makes a link of an invitation in the page, for a role. */
async function invite(app, page, role) {
  await page.goto(`${app.url}/admin/people`)
  await page.getByRole('button', { name: 'Invite', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Invite someone' })
  await dialog.getByRole('radio', { name: new RegExp(`^${role}`) }).check()
  await page.keyboard.press('Enter')
  const link = page.getByRole('dialog', { name: 'Invitation created' }).getByRole('textbox', { name: 'Invitation link' })
  await link.waitFor()
  return link.inputValue()
}

async function join(link, page, name) {
  await page.goto(link)
  await page.getByLabel('Your name').fill(name)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Join' }).click()
  await new SessionView(page).isReady()
}

/** An authenticator of the browser, and a passkey in it. */
async function addPasskey(app, context, page) {
  const cdp = await context.newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true }
  await cdp.send('WebAuthn.addVirtualAuthenticator', { options })
  await page.goto(`${app.url}/settings`)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.getByLabel('Password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Confirm', exact: true }).click()
  await page.getByText('This device').waitFor()
}

/** Asks an assistant as a program does that speaks MCP. */
async function askByMcp(app, key, args) {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', Authorization: `Bearer ${key}` }
  const tell = async (body, more = {}) => {
    const answer = await fetch(`${app.url}/mcp`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: '2.0', ...body }) })
    return { answer, text: await answer.text() }
  }
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'program', version: '1' } }
  const { answer } = await tell({ id: 1, method: 'initialize', params: hello })
  const id = answer.headers.get('mcp-session-id')
  const session = { 'Mcp-Protocol-Version': '2025-06-18', ...(id && { 'Mcp-Session-Id': id }) }
  await tell({ method: 'notifications/initialized' }, session)
  const { text: tools } = await tell({ id: 2, method: 'tools/list' }, session)
  const [, name] = /"name":"(\w+)"/.exec(tools)
  return (await tell({ id: 3, method: 'tools/call', params: { name, arguments: args } }, session)).text
}

story('a company starts from nothing, and nobody does more than they were given', { env }, async ({ app, context, page }) => {
  provider.serve(app.url)
  const asAna = restOf(app, context)
  const role = await asAna('POST', '/api/roles', { name: 'Auditor', rights: ['sessions.read_content'] }, 201)
  const { group } = await asAna('POST', '/api/groups', { name: 'Auditors' }, 201)
  await asAna('PATCH', `/api/groups/${group.id}`, { roles: [role.id] })
  const writer = { name: 'Writer', instructions: 'Speak like a pirate.', openings: ['Write a poem'] }
  await asAna('POST', '/api/assistants?scope=team', writer, 201)
  await asAna('POST', '/api/rules', { effect: 'ask', scope: 'tenant', tool: 'execute_command', approvers: 'somebody_else', freshGesture: true }, 201)
  const linkOfBen = await invite(app, page, 'Member')
  await page.keyboard.press('Escape')
  const linkOfDan = await invite(app, page, 'Admin')

  await elsewhere(async (ben, ofBen) => {
    await join(linkOfBen, ben, 'ben')
    const asBen = restOf(app, ofBen)
    // He starts the team's assistant in the page, narrows it by REST, and asks it over MCP.
    const { items } = await asBen('GET', '/api/assistants')
    assert.deepEqual(items.map(({ name, level }) => [name, level]), [['Writer', 'use']])
    await ben.goto(`${app.url}/s/new?assistant=${items[0].id}`)
    const session = new SessionView(ben)
    await session.isReady()
    model.willSay('Arr, a poem.')
    await ben.getByRole('button', { name: 'Write a poem' }).click()
    await until('it is answered', async () => (await session.answers().last().innerText().catch(() => '')).includes('Arr'))
    assert.ok(model.requests.at(-1).tools.length > 1, 'all tools of his')
    const narrow = await asBen('POST', '/api/sessions', { assistant: items[0].id, tools: [] }, 201)
    model.willSay('Without tools.')
    await asBen('POST', `/api/sessions/${narrow.id}/messages`, { text: 'hello' }, 202)
    await until('the narrowed one is asked', async () => JSON.stringify(model.requests.at(-1).messages).includes('hello'))
    assert.ok(!model.requests.at(-1).tools?.some(({ function: { name } }) => name.includes('execute_command')), 'none of its tools')
    const { secret } = await asBen('POST', '/api/keys', { name: 'program' }, 201)
    model.willSay('Arr, by MCP.')
    const answered = await askByMcp(app, secret, { input: 'hello from a program', assistant: 'Writer' })
    assert.match(answered, /Arr, by MCP/)
    assert.match(JSON.stringify(model.requests.at(-1).messages), /Speak like a pirate/)

    // A command of his waits for somebody else, who decides on a phone with a passkey.
    await ben.goto(`${app.url}/s/new`)
    await session.isReady()
    model.willCall(['execute_command', { command: 'echo it ran' }])
    await session.say('please run it')
    await until('it waits', async () => (await asBen('GET', '/api/approvals/count')).calls === 1)
    const id = await session.id()
    await elsewhere(async (dan, ofDan) => {
      await join(linkOfDan, dan, 'dan')
      await addPasskey(app, ofDan, dan)
      // An admin without the right opens nothing of it.
      const asDan = restOf(app, ofDan)
      for (const path of [`/api/sessions/${id}`, `/api/sessions/${id}/events`]) await asDan('GET', path, null, 404)
      await asDan('POST', `/api/sessions/${id}/readings`, { reason: 'curious' }, 404)
      await dan.goto(`${app.url}/approvals`)
      const button = dan.getByRole('button', { name: APPROVE })
      await button.waitFor()
      model.willSay('It ran.')
      await until('it is approved', async () => {
        if (await button.isVisible()) await button.tap({ timeout: 500 }).catch(() => {})
        return (await asDan('GET', '/api/approvals/count')).calls === 0
      })
    }, PHONE)
    await session.answer()
    assert.match(await session.row('execute_command').innerText(), /dan/)

    // Whoever came by the company's account has the right of their group, and is seen using it.
    await elsewhere(async (cleo, ofCleo) => {
      await cleo.goto(`${app.url}/settings/readings`)
      await cleo.getByRole('button', { name: 'Continue with Acme' }).click()
      await cleo.getByRole('button', { name: 'I am cleo' }).click()
      await cleo.getByLabel('Session', { exact: true }).fill(id)
      await cleo.getByLabel('Reason').fill('case 7')
      await cleo.getByRole('button', { name: 'Start reading' }).click()
      const read = cleo.getByRole('link', { name: 'Read the session of ben' })
      await read.waitFor()
      const shown = await ofCleo.request.get(new URL(await read.getAttribute('href'), cleo.url()).href)
      assert.match(await shown.text(), /please run it/)
    })
    await ben.goto(`${app.url}/s/new`)
    await session.isReady()
    await ben.keyboard.press('Shift')
    await ben.getByText(/^cleo may read one of your sessions until .*: “case 7”/).waitFor()
  })
})
