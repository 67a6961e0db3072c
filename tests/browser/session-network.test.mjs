/** A host that a command was refused is a line of the session: allowed there, reached by the next command, and taken back. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

const model = await ModelStandIn.start()
after(() => model.close())
let visits = 0
const site = createServer((_, answer) => {
  visits += 1
  answer.end('I am the site\n')
})
await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
after(() => site.close())
const host = `localhost:${site.address().port}`
const env = { ...model.env, SPL_SANDBOX: 'bubblewrap', SPL_SANDBOX_NETWORK_ON_REQUEST: host }
const shots = process.env.SCREENSHOTS

async function shoot(page, name) {
  if (shots === undefined) return
  mkdirSync(shots, { recursive: true })
  await page.screenshot({ path: `${shots}/${name}.png` })
}

const GET = `exec 9<>/dev/tcp/127.0.0.1/\${HTTP_PROXY##*:}; printf 'GET http://${host}/ HTTP/1.0\\r\\n\\r\\n' >&9; cat <&9`

async function asked(session, said) {
  model.willCall(['execute_command', { command: GET }]).willSay(said)
  await session.say('go on')
  await session.counts('1 call waits for you.')
}

async function ran(session, said) {
  await asked(session, said)
  await session.press(`Approve: ${await session.heading()}`)
  await session.says(said).waitFor()
}

const NARROW = { width: 390, height: 844 }
const WIDE = { width: 1280, height: 800 }

story('a refused host is allowed for the session on its line, reached, and taken back', { env }, async ({ page, session }) => {
  await page.setViewportSize(WIDE)
  await ran(session, 'It was refused')
  await page.getByText(`A command tried to reach ${host} and was refused.`).waitFor()
  const allow = page.getByRole('button', { name: `Allow in this session: ${host}` })
  await allow.waitFor()
  await allow.scrollIntoViewIfNeeded()
  await isAccessible(page, 'the line of a refused host')
  await shoot(page, 'wide-refused')
  await page.setViewportSize(NARROW)
  await allow.scrollIntoViewIfNeeded()
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)
  assert.equal(wide, false, 'nothing is wider than the screen')
  await shoot(page, 'narrow-refused')
  await page.setViewportSize(WIDE)

  await allow.focus()
  await page.keyboard.press('Enter')
  await page.getByText('Allowed in this session.').waitFor()
  assert.equal(await page.evaluate(() => document.activeElement !== document.body), true, 'the focus stays beside')
  const sentence = `let commands reach \`${host}\``
  await page.getByText(sentence).first().waitFor()
  assert.equal(visits, 0)

  await asked(session, 'It was reached')
  await page.getByText(host).last().waitFor()
  await shoot(page, 'wide-asked')
  await session.press(`Approve: ${await session.heading()}`)
  await session.says('It was reached').waitFor()
  assert.equal(visits, 1)

  // Whoever reloads sees the same, and the rule is in its list.
  await page.reload()
  await page.getByText('Allowed in this session.').waitFor()
  await page.getByRole('button', { name: /^Take back/ }).first().click()
  await allow.waitFor()
  await ran(session, 'It was refused again')
  assert.equal(visits, 1)
})

story('a host is allowed in the panel of the session, before anything was refused', { env }, async ({ page, session }) => {
  await ran(session, 'It was refused')
  await page.locator('header').getByRole('button', { name: 'Details' }).click()
  await page.getByRole('tab', { name: 'Rules' }).click()
  const field = page.getByLabel('Let commands of this session reach')
  await field.fill('*')
  await field.press('Enter')
  await page.getByRole('alert').filter({ hasText: 'it is too wide' }).waitFor()
  await field.fill('pypi.org')
  await field.press('Enter')
  const rules = page.getByRole('region', { name: 'Rules of this session' })
  await rules.getByText('let commands reach').waitFor()
  await isAccessible(page, 'the hosts in the details of a session')
  await page.setViewportSize(NARROW)
  await rules.scrollIntoViewIfNeeded()
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)
  assert.equal(wide, false, 'nothing is wider than the screen')
  await shoot(page, 'narrow-details')
  await page.setViewportSize(WIDE)
  await rules.scrollIntoViewIfNeeded()
  await shoot(page, 'wide-details')
})
