/** Tenants of the installation: made, entered by their people, suspended, resumed and deleted; and one's own sign-ins and password. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { elsewhere, isFocused, pictures } from './support/people.mjs'
import { SessionView } from './support/session.mjs'
import { closeBrowserAtTheEnd, PERSON, story } from './support/story.mjs'
import { deferred, until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PASSWORD = 'another long password'

const row = (page, name) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: new RegExp(`^${name}\\b`) }) })
const menu = (page, name) => row(page, name).getByRole('button', { name: `More for ${name}` })
const statusOf = async (app, context) => (await context.request.get(`${app.url}/api/auth/me`)).status()

/** Chooses from the menu of a tenant by the keyboard alone. */
async function choose(page, name, entry) {
  await menu(page, name).focus()
  await page.keyboard.press('Enter')
  const item = page.getByRole('menuitem', { name: entry })
  await item.waitFor()
  await until(`${entry} has the focus`, async () => {
    if (await item.evaluate((it) => it === document.activeElement)) return true
    await page.keyboard.press('ArrowDown')
    return false
  })
  await page.keyboard.press('Enter')
}

async function signIn(page, { team, name, password }) {
  await page.getByLabel('Name', { exact: true }).fill(name)
  await page.getByLabel('Password').fill(password)
  if (team !== undefined) await page.getByLabel('Team').fill(team)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

story('a tenant is made, its people enter, are locked out and let in again, and it is deleted', {}, async ({ app, page }) => {
  await page.keyboard.press('Control+K')
  await page.getByRole('dialog').getByRole('combobox').fill('suspend a tenant')
  await page.getByRole('option', { name: /Tenants/ }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(`${app.url}/admin/tenants`)
  await page.getByText('Yours is the only tenant.').waitFor()
  await row(page, 'default').getByText('yours', { exact: true }).waitFor()
  assert.equal(await row(page, 'default').getByRole('button').count(), 0, 'nobody locks themselves out')
  await isAccessible(page, 'the only tenant')
  await pictures(page, 'tenants-alone')

  // By the keyboard alone.
  await page.getByRole('button', { name: 'New tenant' }).focus()
  await page.keyboard.press('Enter')
  const form = page.getByRole('dialog', { name: 'New tenant' })
  await isFocused('the name', form.getByLabel('Name'))
  await isAccessible(page, 'the form of a tenant')
  await pictures(page, 'tenants-new')
  await form.getByLabel('Name').focus()
  await page.keyboard.type('default')
  await page.keyboard.press('Enter')
  await form.getByText('There is already a tenant called default.').waitFor()
  await form.getByLabel('Name').fill('acme')
  await page.keyboard.press('Enter')
  const field = page.getByRole('dialog', { name: 'acme created' }).getByRole('textbox', { name: 'Link for the first owner' })
  await isFocused('the link', field)
  const link = await field.inputValue()
  assert.ok(link.startsWith(`${app.url}/join#`), link)
  await isAccessible(page, 'the link of a tenant')
  await pictures(page, 'tenants-link')
  await page.keyboard.press('Escape')
  await field.waitFor({ state: 'detached' })
  await isFocused('the button', page.getByRole('button', { name: 'New tenant' }))
  assert.ok(!(await page.content()).includes(link.split('#')[1]), 'the link is nowhere on the page')
  await row(page, 'acme').getByText('Nobody has joined yet').waitFor()

  await elsewhere(async (other, context) => {
    await other.goto(link)
    await other.getByText('You are invited to acme as an owner.').waitFor()
    await other.getByLabel('Your name').fill('olga')
    await other.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await other.getByRole('button', { name: 'Join' }).click()
    await other.waitForURL(`${app.url}/s/new`)
    const session = new SessionView(other)
    await session.isReady()
    await session.say('The secret plan of acme')
    await session.answer()

    // The owner of a tenant is none of the installation.
    await other.goto(`${app.url}/admin/tenants`)
    await other.getByText('Only administrators of the installation see its tenants.').waitFor()
    assert.equal(await other.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Tenants' }).count(), 0)
    assert.equal((await context.request.get(`${app.url}/api/tenants`)).status(), 403)
    await other.goto(`${app.url}/s/new`)
    await session.isReady()

    // A second person of the same tenant, who was given a password on the command line.
    await app.cli('admin', 'user', 'add', 'pia', '--tenant', 'acme')
    await page.reload()
    await until('two people and a session are counted', async () => /Active\s*2\s*1\s/.test(await row(page, 'acme').innerText()))
    await isAccessible(page, 'the tenants')
    await pictures(page, 'tenants')
    assert.ok(!(await page.content()).includes('secret plan'), 'no conversation is shown')

    await menu(page, 'acme').click()
    await page.getByRole('menuitem', { name: 'Delete…' }).waitFor()
    await page.screenshot({ path: 'screenshots-out/tenants-menu.png' })
    await page.keyboard.press('Escape')
    await isFocused('the menu', menu(page, 'acme'))
    await choose(page, 'acme', 'Suspend…')
    const suspending = page.getByRole('dialog', { name: 'Suspend acme?' })
    await isFocused('the way back', suspending.getByRole('button', { name: 'Cancel' }))
    await isAccessible(page, 'the question before a tenant is suspended')
    await pictures(page, 'tenants-suspend')
    await page.keyboard.press('Escape')
    await suspending.waitFor({ state: 'detached' })
    await isFocused('the menu', menu(page, 'acme'))
    assert.equal(await statusOf(app, context), 200)
    await choose(page, 'acme', 'Suspend…')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await suspending.waitFor({ state: 'detached' })
    await row(page, 'acme').getByText('Suspended', { exact: true }).waitFor()
    await isFocused('the menu', menu(page, 'acme'))

    // They are out, and cannot come back.
    await other.getByText('You are signed out.').first().waitFor()
    assert.equal(await statusOf(app, context), 401)
    await other.goto(`${app.url}/sign-in`)
    assert.equal(await other.getByLabel('Team').inputValue(), 'acme', 'the browser knows its team')
    await isAccessible(other, 'the sign-in with a team')
    await pictures(other, 'tenants-sign-in')
    await signIn(other, { name: 'olga', password: PASSWORD })
    await other.getByRole('alert').getByText('Wrong team, name or password.').waitFor()

    await page.getByRole('combobox', { name: 'State' }).selectOption('suspended')
    await page.waitForURL(/state=suspended/)
    await until('only acme is listed', async () => (await page.getByRole('rowheader').count()) === 1)
    await choose(page, 'acme', 'Resume…')
    await pictures(page, 'tenants-resume')
    const resuming = page.getByRole('dialog', { name: 'Resume acme?' })
    await resuming.getByRole('button', { name: 'Resume' }).click()
    await resuming.waitFor({ state: 'detached' })
    // It does not fit the filter any more, so its menu is gone.
    await page.getByText('No tenant fits these filters.').waitFor()
    await isFocused('the search', page.getByRole('searchbox', { name: 'Search by name' }))
    await pictures(page, 'tenants-none')
    await page.getByRole('button', { name: 'Show all tenants' }).click()
    await row(page, 'acme').getByText('Active', { exact: true }).waitFor()
    await signIn(other, { name: 'olga', password: PASSWORD })
    await session.isReady()

    // Deleting wants the name.
    await choose(page, 'acme', 'Delete…')
    const deleting = page.getByRole('dialog', { name: 'Delete acme?' })
    const typed = deleting.getByLabel('Type acme to confirm')
    await isFocused('the name to type', typed)
    await deleting.getByText('Everything of acme is deleted for good: 2 people, 1 session with its files, all servers').waitFor()
    await isAccessible(page, 'the question before a tenant is deleted')
    await pictures(page, 'tenants-delete')
    await typed.fill('acm')
    await page.keyboard.press('Enter')
    assert.equal(await deleting.getByRole('button', { name: 'Delete' }).getAttribute('aria-disabled'), 'true')
    assert.ok(await deleting.isVisible())
    assert.equal(await statusOf(app, context), 200)
    // The list as it is while the deletion runs, however soon it is done.
    const looked = deferred()
    await page.route('**/api/tenants', async (route) => {
      await looked.promise
      await route.continue()
    })
    await typed.fill('acme')
    await page.keyboard.press('Enter')
    await deleting.waitFor({ state: 'detached' })
    await row(page, 'acme').getByText('Being deleted', { exact: true }).waitFor()
    await isFocused('its row', row(page, 'acme').getByRole('rowheader'))
    await isAccessible(page, 'a tenant that is being deleted')
    await pictures(page, 'tenants-deleting')
    looked.resolve()
    await row(page, 'acme').waitFor({ state: 'detached' })
    await isFocused('the search', page.getByRole('searchbox', { name: 'Search by name' }))
    await page.getByText('Yours is the only tenant.').waitFor()
    await until('they are out', async () => (await statusOf(app, context)) === 401)
    await signInFails(app, other)
  })
})

async function signInFails(app, page) {
  await page.goto(`${app.url}/sign-in`)
  await signIn(page, { team: 'acme', name: 'olga', password: PASSWORD })
  await page.getByRole('alert').getByText('Wrong team, name or password.').waitFor()
}

story('somebody changes their password, and signs out of other browsers', {}, async ({ app, page, context }) => {
  const enter = async (other, password) => {
    await other.goto(`${app.url}/sign-in`)
    await signIn(other, { name: PERSON.name, password })
    await new SessionView(other).isReady()
  }
  const open = async () => {
    await page.goto(`${app.url}/settings/profile`)
    await page.getByRole('list', { name: 'Where you are signed in' }).getByText('This browser').waitFor()
  }
  const others = page.getByRole('list', { name: 'Where you are signed in' }).getByText('Another browser')

  await open()
  await page.getByText('You are signed in nowhere else.').waitFor()
  await elsewhere(async (phone, phoneContext) => {
    await elsewhere(async (work, workContext) => {
      await enter(phone, PERSON.password)
      await enter(work, PERSON.password)
      await open()
      assert.equal(await others.count(), 2)
      await isAccessible(page, 'the profile')
      await pictures(page, 'profile')
      await pictures(page, 'sign-ins', () => page.getByRole('button', { name: 'Sign out everywhere else…' }).scrollIntoViewIfNeeded())

      // The newest is first; one of them ends, by the keyboard alone.
      await page.getByRole('button', { name: /^Sign out of the browser/ }).first().focus()
      await page.keyboard.press('Enter')
      const ending = page.getByRole('dialog', { name: 'Sign out of this other browser?' })
      await isFocused('the way back', ending.getByRole('button', { name: 'Cancel' }))
      await isAccessible(page, 'the question before another browser is signed out')
      await pictures(page, 'sign-out')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await ending.waitFor({ state: 'detached' })
      await isFocused('the heading', page.getByRole('heading', { name: 'Where you are signed in' }))
      await until('one is left', async () => (await others.count()) === 1)
      const out = async () => [await statusOf(app, phoneContext), await statusOf(app, workContext)].filter((status) => status === 401).length
      assert.equal(await out(), 1)

      await page.getByRole('button', { name: 'Sign out everywhere else…' }).click()
      await page.getByRole('dialog', { name: 'Sign out of 1 other browser?' }).getByRole('button', { name: 'Sign out everywhere else' }).click()
      await page.getByText('You are signed in nowhere else.').waitFor()
      assert.equal(await out(), 2)
      await Promise.all([phone, work].map((other) => other.getByText('You are signed out.').first().waitFor()))
    })

    // A new password ends the others as well.
    await enter(phone, PERSON.password)
    await open()
    const next = 'a new and longer password'
    await page.getByLabel('Current password').fill('not the password')
    await page.getByLabel('New password').fill(next)
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('This is not your current password.').waitFor()
    await isFocused('the wrong password', page.getByLabel('Current password'))
    await isAccessible(page, 'a wrong password')
    await pictures(page, 'password-wrong')
    await page.getByLabel('Current password').fill(PERSON.password)
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Password changed.').first().waitFor()
    await page.getByText('You are signed in nowhere else.').waitFor()
    assert.equal(await statusOf(app, context), 200)
    assert.equal(await statusOf(app, phoneContext), 401)
    await phone.goto(`${app.url}/sign-in`)
    await signIn(phone, { name: PERSON.name, password: PERSON.password })
    await phone.getByRole('alert').getByText('Wrong name or password.').waitFor()
    await enter(phone, next)
  })
})

story('where nobody signs in, the page says how tenants can be added', { env: { SPL_AUTH: 'none' }, isNew: true }, async ({ app, page }) => {
  await page.goto(`${app.url}/admin/tenants`)
  await page.getByText('Nobody signs in here, so nobody could enter a new tenant.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'New tenant' }).count(), 0)
  await isAccessible(page, 'tenants without a sign-in')
  await page.screenshot({ path: 'screenshots-out/tenants-no-sign-in.png' })
  await page.goto(`${app.url}/settings/profile`)
  await page.getByRole('heading', { name: 'Passkeys' }).waitFor()
  assert.equal(await page.getByRole('heading', { name: 'Where you are signed in' }).count(), 0)
  await isAccessible(page, 'the profile without a sign-in')
  await page.screenshot({ path: 'screenshots-out/profile-no-sign-in.png' })
})
