/** A call that waits is tried in a copy of the workspace: its card shows what would change, and the call goes on waiting. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const model = await ModelStandIn.start()
after(() => model.close())
const env = { ...model.env, SPL_SANDBOX: 'bubblewrap' }
const shots = process.env.SCREENSHOTS

async function shoot(page, name) {
  if (shots === undefined) return
  mkdirSync(shots, { recursive: true })
  await page.screenshot({ path: `${shots}/${name}.png` })
}

async function asked(session, ...calls) {
  for (const [command, said] of calls) {
    model.willCall(['execute_command', { command }]).willSay(said)
    await session.say('go on')
    await session.counts('1 call waits for you.')
  }
}

async function prepared(session) {
  // What an earlier story left unsaid.
  model.replies.length = 0
  await asked(session, ["printf 'one\\ntwo\\n' >notes.txt; echo x >old.txt", 'All is laid out'])
  await session.press(`Approve: ${await session.heading()}`)
  await session.says('All is laid out').waitFor()
}

const COMMAND = "printf 'one\\nTWO\\n' >notes.txt; rm old.txt; echo new >made.txt; echo all done; exit 3"

story('a dry run shows what a call would change, and the call goes on waiting', { env }, async ({ page, session }) => {
  await prepared(session)
  await asked(session, [COMMAND, 'Over and out'])
  await session.choose(/^Dry run/)
  const report = page.getByRole('region', { name: /^Dry run by/ })
  await report.getByText('exit code 3').first().waitFor()
  await report.getByText('3 files would change: 1 created, 1 modified, 1 deleted').waitFor()
  await report.getByText('+TWO').waitFor()
  await report.getByText('-two').waitFor()
  await report.getByText('all done').first().waitFor()
  await session.counts('1 call waits for you.')
  await isAccessible(page, 'the result of a dry run')
  await shoot(page, 'wide-result')

  // Whoever reloads sees the same.
  await page.reload()
  await page.getByRole('region', { name: /^Dry run by/ }).getByText('+TWO').waitFor()
  await page.getByRole('button', { name: /^Discard: / }).press('Enter')
  await report.waitFor({ state: 'detached' })
  await until('the focus stays on the card', () => session.card.evaluate((card) => card.contains(document.activeElement)))

  await session.press(`Approve: ${await session.heading()}`)
  await session.says('Over and out').waitFor()
})

story('a call has the result of its dry run, and does not run again', { env }, async ({ page, session }) => {
  await prepared(session)
  await asked(session, ["head -c 9 /dev/urandom | base64 >random.txt; echo random: $(cat random.txt)", 'It is as it was'])
  await session.choose(/^Dry run/)
  const output = page.getByRole('region', { name: /^Dry run by/ }).getByText(/random: /).last()
  const [said] = (await output.textContent()).match(/random: \S+/)
  const take = page.getByRole('button', { name: /^Approve with this result: / })
  await take.waitFor()
  await isAccessible(page, 'a dry run whose result can be taken')
  await shoot(page, 'wide-take')
  await until('the result is taken', async () => {
    if (await take.isVisible()) await take.press('Enter', { timeout: 1_000 }).catch(() => {})
    return !(await take.isVisible())
  })
  await session.says('It is as it was').waitFor()
  await page.getByText('with the result of the dry run').waitFor()
  assert.ok(JSON.stringify(model.requests.at(-1)).includes(said), 'the model reads what the dry run gave')
  await page.getByText('1 file changed').waitFor()
  await shoot(page, 'wide-taken')
})

story('a dry run is cancelled, also where there is little room', { env }, async ({ page, session }) => {
  await asked(session, ['echo begun; sleep 600', 'Slept well'])
  await page.setViewportSize({ width: 390, height: 844 })
  await page.locator('.tray-peek-button').click()
  await session.choose(/^Dry run/)
  await page.getByText(/^Dry run in a copy of the workspace since/).waitFor()
  await shoot(page, 'narrow-running')
  await page.getByRole('button', { name: /^Cancel the dry run: / }).click()
  await page.getByText(/^Dry run in a copy of the workspace since/).waitFor({ state: 'detached' })
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)
  assert.equal(wide, false, 'nothing is wider than the screen')
  await isAccessible(page, 'a card with a dry run on a phone')
  await shoot(page, 'narrow-offer')
})

story('on a phone the result is read and the decisions stay in reach', { env }, async ({ page, session }) => {
  await prepared(session)
  await asked(session, [COMMAND, 'Over and out'])
  await page.setViewportSize({ width: 390, height: 844 })
  await page.locator('.tray-peek-button').click()
  await session.choose(/^Dry run/)
  await page.getByRole('region', { name: /^Dry run by/ }).getByText('+TWO').waitFor()
  await shoot(page, 'narrow-result')
  const approve = page.getByRole('button', { name: /^Approve: / })
  assert.equal(await approve.isVisible(), true)
  const { y, height } = await approve.boundingBox()
  assert.ok(y + height <= 844, 'the yes is on the screen')
  await isAccessible(page, 'the result of a dry run on a phone')
})
