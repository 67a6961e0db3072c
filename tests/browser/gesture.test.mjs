/** A rule that wants a fresh gesture: a passkey of the settings, the password, and a script that presses the button. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { closeBrowserAtTheEnd, PERSON, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const APPROVE = 'Approve: Run a command'

/** An authenticator of the browser, as if a finger was always on it. */
async function withAuthenticator(context, page) {
  const cdp = await context.newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true }
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options })
  return { cdp, authenticatorId }
}

/** Every command of the tenant wants a fresh gesture. */
async function signEverything(app, context) {
  const me = await (await context.request.get(`${app.url}/api/auth/me`)).json()
  const answer = await context.request.post(`${app.url}/api/rules`, {
    headers: { 'X-CSRF-Token': me.csrfToken },
    data: { effect: 'ask', scope: 'tenant', tool: 'execute_command', freshGesture: true },
  })
  assert.equal(answer.status(), 201, await answer.text())
  return me.csrfToken
}

async function addPasskey(app, page) {
  await page.goto(`${app.url}/settings`)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.getByLabel('Password').fill(PERSON.password)
  await dialog.getByRole('button', { name: 'Confirm', exact: true }).click()
  await page.getByText('This device').waitFor()
}

/** Presses Approve until the card takes it: it takes nothing right after it came. */
async function approve(session, page) {
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await until('the gesture is asked or made', async () => {
    if (await dialog.isVisible()) return true
    const button = session.button(APPROVE)
    if (!(await button.isVisible())) return true
    await button.click({ timeout: 500 }).catch(() => {})
    return dialog.isVisible()
  })
  return dialog
}

story('a call is approved with a passkey of the settings, and a script that presses the button changes nothing', {}, async ({ app, context, page, session }) => {
  const { cdp, authenticatorId } = await withAuthenticator(context, page)
  const csrf = await signEverything(app, context)
  await addPasskey(app, page)
  await isAccessible(page, 'passkeys in the settings')
  const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId })
  assert.equal(credentials.length, 1)

  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.say('run: date')
  await session.button(APPROVE).waitFor()
  // What an agent in the page could do without the person.
  const sessionId = await session.id()
  const refused = await page.evaluate(async ([id, token]) => {
    const waiting = await (await fetch(`/api/approvals?session=${id}`)).json()
    const { callId, digest } = waiting.items[0].queue.calls[0]
    const answer = await fetch(`/api/sessions/${id}/approvals`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': token },
      body: JSON.stringify({ callId, digest, approved: true }),
    })
    return { status: answer.status, code: (await answer.json()).code }
  }, [sessionId, csrf])
  assert.deepEqual(refused, { status: 403, code: 'gesture_required' })
  await cdp.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false })
  const dialog = await approve(session, page)
  await dialog.getByText('Waiting for your passkey…').waitFor()
  await page.evaluate(() => document.querySelectorAll('dialog button').forEach((button) => button.click()))
  await session.button(APPROVE).waitFor()
  const count = await (await context.request.get(`${app.url}/api/approvals/count`)).json()
  assert.equal(count.calls, 1, 'it still waits')

  await cdp.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: true })
  await approve(session, page)
  await session.answer()
  assert.match(await session.row('execute_command').innerText(), /confirmed by passkey/)
})

story('a call is approved with the password, by keyboard, and a wrong one says so', {}, async ({ app, context, page, session }) => {
  await signEverything(app, context)
  await session.say('run: date')
  await session.button(APPROVE).waitFor()
  await session.composer.focus()
  await page.keyboard.press('Alt+ArrowUp')
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await until('the password is asked', async () => {
    if (!(await dialog.isVisible())) await page.keyboard.press('a')
    return dialog.isVisible()
  })
  const password = dialog.getByLabel('Password')
  await isAccessible(page, 'the dialog of a gesture')
  await password.fill('not the password')
  await page.keyboard.press('Enter')
  await dialog.getByRole('alert').getByText(/the password is wrong/).waitFor()
  await password.fill(PERSON.password)
  await page.keyboard.press('Enter')
  await session.answer()
})

story('a call is approved from the inbox of a phone', { context: PHONE }, async ({ app, context, page, session }) => {
  await withAuthenticator(context, page)
  await signEverything(app, context)
  await addPasskey(app, page)
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.composer.fill('run: date')
  await page.getByRole('button', { name: 'Send' }).tap()
  await until('it waits', async () => (await (await context.request.get(`${app.url}/api/approvals/count`)).json()).calls === 1)
  const id = await session.id()
  await page.goto(`${app.url}/approvals`)
  const button = page.getByRole('button', { name: APPROVE })
  await button.waitFor()
  await until('it is approved', async () => {
    if (await button.isVisible()) await button.tap({ timeout: 500 }).catch(() => {})
    return (await (await context.request.get(`${app.url}/api/approvals/count`)).json()).calls === 0
  })
  await page.goto(`${app.url}/s/${id}`)
  await session.answer()
})

story('somebody signs in by a passkey without a name, and lets nothing else count', {}, async ({ app, context, page }) => {
  await withAuthenticator(context, page)
  await addPasskey(app, page)
  // One passkey is enough for those who have help.
  const help = page.getByLabel('If I lose it, an administrator lets me in by a link.')
  await help.check()
  await isAccessible(page, 'the choice that only passkeys count')
  await page.getByRole('button', { name: 'Allow passkeys only' }).click()
  await page.getByRole('button', { name: 'Allow my password again' }).waitFor()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
  await isAccessible(page, 'a sign-in page with passkeys')

  await page.getByLabel('Name', { exact: true }).fill(PERSON.name)
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').getByText('Wrong name or password.').waitFor()

  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await until('somebody is signed in', async () => (await context.request.get(`${app.url}/api/auth/me`)).status() === 200)
  await page.goto(`${app.url}/settings`)
  await page.getByRole('button', { name: 'Allow my password again' }).click()
  await page.getByText('You can choose that passkeys alone count.').waitFor()
})
