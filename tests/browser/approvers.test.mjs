/** Calls that want the yes of others than whose session it is: two people, and somebody else. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { SessionView } from './support/session.mjs'
import { browser, closeBrowserAtTheEnd, story, watch } from './support/story.mjs'
import { DEADLINE_MS, until } from './support/until.mjs'

closeBrowserAtTheEnd()

const APPROVE = 'Approve: Run a command'

/** Somebody else of the same team, in a browser of their own. */
async function withBen(app, tell) {
  await app.cli('admin', 'user', 'add', 'ben')
  const [, link] = /(http\S+)/.exec(await app.cli('link', '--user', 'ben'))
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
  context.setDefaultTimeout(DEADLINE_MS)
  try {
    const page = await context.newPage()
    const problems = watch(page)
    await page.goto(link)
    await new SessionView(page).isReady()
    await tell({ context, page })
    assert.deepEqual(problems.errors, [])
  } finally {
    await context.close()
  }
}

/** An admin says in the form who must say yes to any command. */
async function giveRule(app, page, approvers, sentence) {
  await page.goto(`${app.url}/admin/rules`)
  await page.getByRole('heading', { name: 'New rule' }).waitFor()
  await page.getByLabel('Tool', { exact: true }).fill('execute_command')
  await page.getByLabel('Who must approve').selectOption({ label: approvers })
  await page.getByRole('button', { name: 'Save the rule', disabled: false }).waitFor()
  await isAccessible(page, 'the form of a rule')
  await page.getByRole('button', { name: 'Save the rule' }).click()
  await page.getByText('The rule is saved and in force.').first().waitFor()
  await page.locator('.rule').getByText(sentence).waitFor()
}

/** What was said before, and then a call that waits; gives the session's id. */
async function askForCommand(app, page, session) {
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.say('hello from before')
  await session.answer()
  await session.say('run: echo it ran')
  await session.button(APPROVE).waitFor()
  return session.id()
}

/** Presses Approve until the page says so: a card takes nothing right after it came. */
async function approve(button, isTaken) {
  await until('the yes is taken', async () => {
    if (await isTaken()) return true
    await button.click({ timeout: 500 }).catch(() => {})
    return isTaken()
  })
}

/** Ben sees the card and the newest message of another's session, and nothing else of it. */
async function findsInInbox(app, context, page, id) {
  await page.goto(`${app.url}/approvals`)
  const waiting = page.getByRole('region', { name: 'A session of ana' })
  await waiting.getByRole('button', { name: APPROVE }).waitFor()
  const shown = await waiting.innerText()
  assert.match(shown, /run: echo it ran/)
  assert.doesNotMatch(shown, /hello from before/)
  assert.equal(await waiting.getByRole('heading', { level: 2 }).getByRole('link').count(), 0, 'no way leads into the session')
  for (const path of [`/api/sessions/${id}`, `/api/sessions/${id}/events`]) {
    assert.equal((await context.request.get(`${app.url}${path}`)).status(), 404, path)
  }
  return waiting
}

story('two people say yes, the second from the inbox, before a command runs', {}, async ({ app, page, session }) => {
  await giveRule(app, page, 'Two people', 'Two people must say yes.')
  const id = await askForCommand(app, page, session)
  await session.tray.getByText('Approval needed from two people.').waitFor()
  const given = session.tray.getByText('1 so far: ana approved.')
  await approve(session.button(APPROVE), () => given.isVisible())
  assert.ok(await session.button(APPROVE).isDisabled(), 'one person says yes once')
  await isAccessible(page, 'a call that waits for a second yes')
  assert.equal(await session.answers().count(), 1, 'nothing ran')

  await withBen(app, async (ben) => {
    const waiting = await findsInInbox(app, ben.context, ben.page, id)
    assert.match(await waiting.innerText(), /1 so far: ana approved\./)
    await isAccessible(ben.page, "the inbox with another's call")
    await approve(waiting.getByRole('button', { name: APPROVE }), async () => !(await waiting.isVisible()))
  })
  await session.answer(2)
  assert.match(await session.row('execute_command').innerText(), /ben/)
})

story('where somebody else is wanted, the button of the owner is disabled and says why', {}, async ({ app, page, session }) => {
  await giveRule(app, page, 'Someone other than the owner of the session', 'Somebody else must say yes.')
  const id = await askForCommand(app, page, session)
  await session.tray.getByText(/Approval needed from someone other than the owner of the session\.\s+Your approval does not count here\./).waitFor()
  assert.ok(await session.button(APPROVE).isDisabled())
  assert.ok(await session.button('Reject: Run a command').isEnabled(), 'the owner may always refuse')

  await withBen(app, async (ben) => {
    const waiting = await findsInInbox(app, ben.context, ben.page, id)
    await approve(waiting.getByRole('button', { name: APPROVE }), async () => !(await waiting.isVisible()))
  })
  await session.answer(2)
})
