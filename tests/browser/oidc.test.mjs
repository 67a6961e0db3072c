/** People sign in with their company's account, in a role of its groups, and are signed out when the company says so. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { OpenIdProvider } from './support/openid.mjs'
import { SessionView } from './support/session.mjs'
import { browser, closeBrowserAtTheEnd, story, watch } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const BEN = { sub: '4711', preferred_username: 'ben', name: 'Ben B.', email: 'ben@acme.test', groups: ['staff', 'ops'] }
const provider = await OpenIdProvider.start(BEN)
after(() => provider.close())

const env = { ...provider.env, SPL_OIDC_ROLES: 'staff=viewer ops=admin', SPL_OIDC_DEFAULT_ROLE: 'none' }

story("somebody comes by their company's account, and goes when the company says so", { env }, async ({ app }) => {
  provider.serve(app.url)
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
  try {
    const page = await context.newPage()
    const problems = watch(page)
    await page.goto(`${app.url}/admin/rules`)
    const button = page.getByRole('button', { name: 'Continue with Acme' })
    await button.waitFor()
    await isAccessible(page, 'a sign-in page with a provider')

    // Whoever cancels is told so, in our words.
    await button.click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('alert').getByText('The provider did not let you in, or you cancelled.').waitFor()
    assert.equal(new URL(page.url()).pathname, '/sign-in')
    await isAccessible(page, 'a refusal of a provider')

    // By the keyboard alone, and back to where they wanted to be.
    await page.goto(`${app.url}/admin/rules`)
    await button.focus()
    await page.keyboard.press('Enter')
    const yes = page.getByRole('button', { name: 'I am ben' })
    await yes.focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(`${app.url}/admin/rules`)
    const me = () => context.request.get(`${app.url}/api/auth/me`)
    const { user, tenant } = await (await me()).json()
    assert.deepEqual([user.name, user.role, tenant.name], ['ben', 'admin', 'default'])

    await page.goto(`${app.url}/s/new`)
    const session = new SessionView(page)
    await session.isReady()
    // Ben has neither a passkey nor a password, so he confirms a call at the company.
    const { csrfToken } = await (await me()).json()
    const rule = { effect: 'ask', scope: 'tenant', tool: 'execute_command', freshGesture: true }
    const added = await context.request.post(`${app.url}/api/rules`, { headers: { 'X-CSRF-Token': csrfToken }, data: rule })
    assert.equal(added.status(), 201, await added.text())
    await session.say('run: date')
    const confirm = page.getByRole('button', { name: 'Confirm at Acme' })
    await until('the gesture is asked', async () => {
      if (await confirm.isVisible()) return true
      await session.button('Approve: Run a command').click({ timeout: 500 }).catch(() => {})
      return confirm.isVisible()
    })
    await isAccessible(page, 'a gesture at a provider')
    const opened = context.waitForEvent('page')
    await confirm.click()
    await (await opened).getByRole('button', { name: 'I am ben' }).click()
    await session.answer()
    assert.match(await session.row('execute_command').innerText(), /confirmed by a new sign-in at their provider/)
    // Ben signs out at the company, and the company tells every program.
    const there = await context.newPage()
    await there.goto(`${provider.issuer}/session/end`)
    await there.getByRole('button', { name: /^Yes/ }).click()
    await page.getByText('You are signed out.').first().waitFor()
    await until('the sign-in has ended', async () => (await me()).status() === 401)
    await there.close()
    assert.deepEqual(problems.errors, [])
  } finally {
    await context.close()
  }
})
