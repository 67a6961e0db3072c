/** Custom roles and groups, and reading the session of somebody else by a right that a role gives. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { elsewhere, isFocused, pictures } from './support/people.mjs'
import { SessionView } from './support/session.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

const PASSWORD = 'another long password'

story('an owner lets a group read sessions, and whose session is read is told by whom and why', {}, async ({ app, page, session }) => {
  await session.say('stream: 3')
  const answer = await session.answer()
  const id = await session.id()

  await page.getByRole('link', { name: /Settings/ }).click()
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Roles and groups' }).click()
  await page.getByText('There are no custom roles.').waitFor()
  await page.getByRole('button', { name: 'New role' }).focus()
  await page.keyboard.press('Enter')
  const form = page.getByRole('dialog', { name: 'New role' })
  await isFocused('the name', form.getByLabel('Name'))
  await form.getByLabel('Name').fill('Reviewer')
  await form.getByRole('checkbox', { name: /^Read sessions of others/ }).check()
  await isAccessible(page, 'the form of a role')
  await pictures(page, 'role-new')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  const roles = page.getByRole('list', { name: 'Roles' })
  await roles.getByText('Nobody has it').waitFor()
  await isFocused('the button', page.getByRole('button', { name: 'New role' }))

  const invited = await app.cli('admin', 'user', 'invite', '--tenant', 'default')
  const link = `${app.url}/join#${/#(\S+)/.exec(String(invited.stdout ?? invited))[1]}`
  await elsewhere(async (other) => {
    await other.goto(link)
    await other.getByLabel('Your name').fill('ben')
    await other.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await other.getByRole('button', { name: 'Join' }).click()
    await other.waitForURL(`${app.url}/s/new`)
    await new SessionView(other).isReady()

    await page.getByRole('button', { name: 'New group' }).click()
    const making = page.getByRole('dialog', { name: 'New group' })
    await making.getByLabel('Name').fill('Reviewers')
    await making.getByRole('button', { name: 'Save' }).click()
    await making.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Edit group Reviewers' }).click()
    const group = page.getByRole('dialog', { name: 'Group Reviewers' })
    await group.getByRole('checkbox', { name: 'Reviewer' }).check()
    await group.getByRole('combobox', { name: 'Person to add' }).selectOption({ label: 'ben' })
    await group.getByRole('button', { name: 'Add', exact: true }).click()
    await group.getByRole('button', { name: 'Remove ben' }).waitFor()
    await isAccessible(page, 'a group')
    await pictures(page, 'role-group')
    await group.getByRole('button', { name: 'Save' }).click()
    await group.waitFor({ state: 'detached' })
    await roles.getByText('1 group has it').waitFor()
    await isAccessible(page, 'the roles and groups')
    await pictures(page, 'roles')

    // The right counts from the next thing that ben does.
    await other.goto(`${app.url}/settings/readings`)
    await other.getByText('Nobody has read a session of yours.').waitFor()
    await other.getByLabel('Session', { exact: true }).fill(id)
    await other.getByLabel('Reason').fill('case 7')
    await other.getByRole('button', { name: 'Start reading' }).click()
    const read = other.getByRole('link', { name: 'Read the session of ana' })
    await read.waitFor()
    await isAccessible(other, 'what one may read')
    await pictures(other, 'readings')
    const address = new URL(await read.getAttribute('href'), other.url()).href
    const shown = await other.context().newPage()
    assert.equal((await shown.goto(address)).status(), 200)
    assert.ok((await shown.locator('body').innerText()).includes(answer))
    assert.equal(await shown.locator('button, form, textarea').count(), 0, 'there is nothing to act on')

    // Whose session it is reads so, wherever they are, until they have seen it.
    await page.goto(`${app.url}/s/new`)
    await session.isReady()
    await page.keyboard.press('Shift')
    const notice = page.getByText(/^ben may read one of your sessions until .*: “case 7”/)
    await notice.waitFor()
    await isAccessible(page, 'the notice of a reading')
    await pictures(page, 'reading-notice')
    await page.getByRole('button', { name: 'I have seen it: ben may read this session' }).click()
    await notice.waitFor({ state: 'detached' })
    await page.goto(`${app.url}/settings/readings`)
    await page.getByText(/^ben may read it until/).waitFor()

    // Without the role, nothing opens any more.
    await page.goto(`${app.url}/settings/roles`)
    await page.getByRole('button', { name: 'Delete Reviewer' }).click()
    await page.getByRole('dialog', { name: 'Delete the role Reviewer?' }).getByRole('button', { name: 'Delete' }).click()
    await page.getByText('There are no custom roles.').waitFor()
    assert.equal((await shown.goto(address)).status(), 404)
    await shown.close()
  })

  // Whose rights these are is said beside each person.
  await page.goto(`${app.url}/admin/people`)
  await page.getByRole('button', { name: 'More for ben' }).click()
  await page.getByRole('menuitem', { name: 'Roles and rights…' }).click()
  const of = page.getByRole('dialog', { name: 'Roles of ben' })
  await of.getByText('Groups: Reviewers').waitFor()
  await page.keyboard.press('Escape')
  await of.waitFor({ state: 'detached' })
  await isFocused('the menu', page.getByRole('button', { name: 'More for ben' }))
})
