/** People of a team, invited by a link, given a role, disabled and restored; and the API keys of programs. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { elsewhere, isFocused, pictures } from './support/people.mjs'
import { SessionView } from './support/session.mjs'
import { closeBrowserAtTheEnd, PERSON, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PASSWORD = 'another long password'

const row = (page, name) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: new RegExp(`^${name}\\b`) }) })

/** Until the server took a change of a person. */
const isChanged = (page) => page.waitForResponse((response) => /\/api\/people\/usr_/.test(response.url()) && response.ok())

/** Makes a link by the dialog, with the keyboard alone. */
async function invite(page, note) {
  await page.getByRole('button', { name: 'Invite', exact: true }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Invite someone' })
  await isFocused('the usual role', dialog.getByRole('radio', { name: /^Member/ }))
  await dialog.getByLabel('For whom').fill(note)
  await page.keyboard.press('Enter')
  const field = page.getByRole('dialog', { name: 'Invitation created' }).getByRole('textbox', { name: 'Invitation link' })
  await isFocused('the link', field)
  return field.inputValue()
}

story('an owner invites by a link, makes who came a viewer, and ends and restores their access', {}, async ({ app, page, session }) => {
  await page.getByRole('link', { name: /Settings/ }).click()
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'People' }).click()
  await page.waitForURL(`${app.url}/admin/people`)
  await page.getByText('You are the only one here.').waitFor()
  await row(page, PERSON.name).getByText('you', { exact: true }).waitFor()
  await row(page, PERSON.name).getByText('The only owner.').waitFor()
  await page.getByText('No invitation is open.').waitFor()

  await page.getByRole('button', { name: 'Invite', exact: true }).click()
  const asking = page.getByRole('dialog', { name: 'Invite someone' })
  await asking.getByRole('radio', { name: /^Member/ }).waitFor()
  await isAccessible(page, 'the form of an invitation')
  await pictures(page, 'people-invite')
  await page.keyboard.press('Escape')
  await asking.waitFor({ state: 'detached' })
  await isFocused('the button', page.getByRole('button', { name: 'Invite', exact: true }))
  const link = await invite(page, 'Ben')
  assert.ok(link.startsWith(`${app.url}/join#`), link)
  await isAccessible(page, 'the link of an invitation')
  await pictures(page, 'people-link')
  await page.keyboard.press('Escape')
  await page.getByRole('list', { name: 'Open invitations' }).getByText('Ben').waitFor()

  await elsewhere(async (other, context) => {
    await other.goto(link)
    await other.getByText(/^ana invites you to \S+ as a member\.$/).waitFor()
    assert.equal(other.url(), `${app.url}/join`, 'the secret is not left in the address')
    await isAccessible(other, 'the page of an invitation')
    await pictures(other, 'people-join')
    await other.getByLabel('Your name').fill(PERSON.name)
    await other.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await other.keyboard.press('Enter')
    await other.getByText('Someone here is already called ana.').waitFor()
    await other.getByLabel('Your name').fill('ben')
    await other.getByRole('button', { name: 'Join' }).click()
    await other.waitForURL(`${app.url}/s/new`)
    await new SessionView(other).isReady()
    const me = async () => context.request.get(`${app.url}/api/auth/me`)
    assert.equal((await (await me()).json()).user.role, 'member')

    // A link works once.
    await elsewhere(async (third) => {
      await third.goto(link)
      await third.getByText('Ask for a new link.').waitFor()
      await isAccessible(third, 'a used invitation')
      await pictures(third, 'people-join-used')
    })

    // Those who administer nobody are told so.
    await other.goto(`${app.url}/admin/people`)
    await other.getByText('Only admins see who is in a team.').waitFor()
    assert.equal(await other.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'People' }).count(), 0)

    await page.reload()
    await page.getByText('1 used or expired in the last month').click()
    await page.getByText(/used by ben/).waitFor()
    await isAccessible(page, 'the people')
    await pictures(page, 'people-list')

    const changed = isChanged(page)
    await row(page, 'ben').getByRole('combobox').selectOption('viewer')
    await changed
    await until('ben is a viewer', async () => (await (await me()).json()).user.role === 'viewer')

    // What makes somebody an admin is asked first, and whoever says no has changed nothing.
    await row(page, 'ben').getByRole('combobox').selectOption('admin')
    const raise = page.getByRole('dialog', { name: 'Make ben an admin?' })
    await isAccessible(page, 'the question before somebody becomes an admin')
    await page.keyboard.press('Escape')
    await raise.waitFor({ state: 'detached' })
    await isFocused('the role', row(page, 'ben').getByRole('combobox'))
    assert.equal(await row(page, 'ben').getByRole('combobox').inputValue(), 'viewer')

    // By the keyboard alone.
    await other.goto(`${app.url}/s/new`)
    await new SessionView(other).isReady()
    await row(page, 'ben').getByRole('button', { name: 'More for ben' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('menuitem', { name: 'Disable…' }).waitFor()
    await page.screenshot({ path: 'screenshots-out/people-menu.png' })
    await page.keyboard.press('Home')
    await page.keyboard.press('Enter')
    const ending = page.getByRole('dialog', { name: 'Disable ben?' })
    await isFocused('the way back', ending.getByRole('button', { name: 'Cancel' }))
    await pictures(page, 'people-disable')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await ending.waitFor({ state: 'detached' })
    await row(page, 'ben').getByText('Disabled').waitFor()
    await isFocused('the menu', row(page, 'ben').getByRole('button', { name: 'More for ben' }))
    await other.getByText('You are signed out.').first().waitFor()
    assert.equal((await me()).status(), 401)
  })

  // Several at once.
  await app.cli('admin', 'user', 'add', 'cleo', '--tenant', 'default')
  await page.getByRole('combobox', { name: 'State' }).selectOption('disabled')
  await page.waitForURL(/state=disabled/)
  await until('only ben is listed', async () => (await page.getByRole('rowheader').count()) === 1)
  await page.getByRole('checkbox', { name: 'Select all' }).check()
  const bar = page.getByRole('group', { name: '1 person selected' })
  await isAccessible(page, 'people who are selected')
  await pictures(page, 'people-selected')
  await bar.getByRole('button', { name: 'Restore…' }).click()
  await page.getByRole('dialog', { name: 'Restore 1 person?' }).getByRole('button', { name: 'Restore' }).click()
  await bar.waitFor({ state: 'detached' })
  await row(page, 'ben').getByText('Active').waitFor()
  await page.getByRole('searchbox', { name: 'Search by name' }).fill('nobody at all')
  await page.getByText('No one fits these filters.').waitFor()
  await page.getByRole('button', { name: 'Show everyone' }).click()
  await until('all are listed', async () => (await page.getByRole('rowheader').count()) === 3)
  assert.equal(page.url(), `${app.url}/admin/people`)

  // For good, and only once the name is typed.
  await row(page, 'cleo').getByRole('button', { name: 'More for cleo' }).click()
  await page.getByRole('menuitem', { name: 'Delete…' }).click()
  const deletion = page.getByRole('dialog', { name: 'Delete cleo?' })
  assert.equal(await deletion.getByRole('button', { name: 'Delete' }).getAttribute('aria-disabled'), 'true')
  await deletion.getByLabel('Type cleo to confirm').fill('cleo')
  await isAccessible(page, 'the question before somebody is deleted')
  await page.keyboard.press('Enter')
  await deletion.waitFor({ state: 'detached' })
  await until('two are listed', async () => (await page.getByRole('rowheader').count()) === 2)
  await isFocused('the search', page.getByRole('searchbox', { name: 'Search by name' }))

  // What is taken back lets nobody in.
  const taken = await invite(page, 'Dan')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Take back: Dan' }).click()
  await page.getByRole('dialog', { name: 'Take back the invitation for Dan?' }).getByRole('button', { name: 'Take back' }).click()
  await page.getByText('No invitation is open.').waitFor()
  await elsewhere(async (other) => {
    await other.goto(taken)
    await other.getByText('Ask for a new link.').waitFor()
  })
})

story('a key is made, used once by a program, and refused once it is revoked', {}, async ({ app, page }) => {
  const ask = async (secret) => (await fetch(`${app.url}/api/auth/me`, { headers: { Authorization: `Bearer ${secret}` } })).status
  await page.goto(`${app.url}/settings/keys`)
  await page.getByText('You have no key.').waitFor()
  await page.getByRole('button', { name: 'New key' }).focus()
  await page.keyboard.press('Enter')
  const form = page.getByRole('dialog', { name: 'New key' })
  await isFocused('the name', form.getByLabel('Name'))
  await isAccessible(page, 'the form of a key')
  await pictures(page, 'people-key-new')
  await form.getByLabel('Name').focus()
  await page.keyboard.type('nightly report')
  await page.keyboard.press('Enter')
  const field = page.getByRole('dialog', { name: 'Key created' }).getByRole('textbox', { name: 'API key' })
  await isFocused('the key', field)
  const secret = await field.inputValue()
  await isAccessible(page, 'a new key')
  await pictures(page, 'people-key-made')
  await page.keyboard.press('Escape')
  await field.waitFor({ state: 'detached' })
  assert.ok(!(await page.content()).includes(secret), 'the key is nowhere on the page')
  assert.equal(await ask(secret), 200)

  await page.reload()
  const key = page.getByRole('row').filter({ hasText: 'nightly report' })
  await key.getByText('Just now').waitFor()
  assert.ok(secret.startsWith((await key.locator('code').innerText()).slice(0, -1)), 'the list says how it begins')
  await page.getByRole('switch', { name: "Everybody's keys" }).check()
  await page.waitForURL(/of=everybody/)
  await key.getByText(PERSON.name, { exact: true }).waitFor()
  await isAccessible(page, 'the keys')
  await pictures(page, 'people-keys')
  await key.getByRole('button', { name: 'Revoke nightly report' }).focus()
  await page.keyboard.press('Enter')
  const ending = page.getByRole('dialog', { name: 'Revoke nightly report?' })
  await isFocused('the way back', ending.getByRole('button', { name: 'Cancel' }))
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('Nobody has a key.').waitFor()
  await isFocused('the way on', page.getByRole('button', { name: 'New key' }))
  assert.equal(await ask(secret), 401)
})

story('where nobody signs in, the page says how people can be invited', { env: { SPL_AUTH: 'none' }, isNew: true }, async ({ app, page }) => {
  await page.goto(`${app.url}/admin/people`)
  await page.getByText('Nobody signs in here, so nobody can be invited.').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Invite', exact: true }).count(), 0)
  await isAccessible(page, 'people without a sign-in')
  await page.screenshot({ path: 'screenshots-out/people-none.png' })
})
