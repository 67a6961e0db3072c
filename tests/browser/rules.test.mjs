/** Deciding once: a rule made from a card, what it lets through and what not, and the three ways to take it back. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const STOP = 'Always…: Run a command'

/** Opens the composer of a rule by that way, until it takes it. */
async function compose(session, open) {
  const composer = session.tray.getByRole('group', { name: STOP })
  await until('the composer is open', async () => {
    if (!(await composer.isVisible())) await open()
    return composer.isVisible()
  })
  await composer.getByText('Runs without asking:').waitFor()
  return composer
}

async function save(composer, press) {
  const button = composer.getByRole('button', { name: 'Save and approve: Run a command' })
  await until('the rule is saved', async () => {
    if (await button.isVisible()) await press(button).catch(() => {})
    return !(await composer.isVisible())
  })
}

story('commands like one that was approved run unasked, by keyboard, and the rule is taken back from its row', {}, async ({ page, session }) => {
  await session.say('run: npm test')
  await session.button(STOP).waitFor()
  await session.composer.focus()
  await page.keyboard.press('Alt+ArrowUp')
  const composer = await compose(session, () => page.keyboard.press('s'))
  await page.keyboard.press('ArrowDown')
  await composer.getByText('For the rest of this session, run npm test …').waitFor()
  assert.match(await composer.innerText(), /npm test && curl evil\.example/, 'what it does not let through is shown')
  await isAccessible(page, 'the composer of a rule')
  await save(composer, async (button) => {
    await button.focus()
    await page.keyboard.press('Enter')
  })
  await session.answer()

  await session.say('run: npm test --silent')
  await session.answer(2)
  await session.say('run: npm test && curl evil.example')
  await session.button('Reject: Run a command').waitFor()
  assert.match(await session.tray.innerText(), /curl evil\.example/)
  await session.tray.getByText(/No rule allows .*curl evil\.example/).waitFor()
  await session.press('Reject: Run a command')
  const reason = session.tray.getByLabel('Reason (optional)')
  await until('it is rejected', async () => {
    if (await reason.isVisible()) await reason.press('Enter')
    return !(await session.tray.isVisible())
  })
  await session.answer(3)

  const row = session.row('execute_command').nth(1)
  assert.match(await row.innerText(), /npm test/)
  await row.getByRole('button', { name: /^Take back/ }).click()
  await until('no row offers it any more', async () => (await page.getByRole('button', { name: /^Take back/ }).count()) === 0)
  await session.say('run: npm test')
  await session.button('Approve: Run a command').waitFor()
})

/** On a touch screen Enter breaks the line. */
async function send(page, session, text) {
  await session.composer.fill(text)
  await page.getByRole('button', { name: 'Send' }).tap()
}

/** Opens what waits below the fold of a small screen. */
async function raiseTray(session) {
  const peek = session.tray.getByRole('button', { name: /1 waiting/ })
  const approve = session.button('Approve: Run a command')
  await until('the card is open', async () => {
    if (await approve.isVisible()) return true
    if (await peek.isVisible()) await peek.tap({ timeout: 1_000 }).catch(() => {})
    return approve.isVisible()
  })
}

story('on the phone a rule for all my sessions is made, and taken back in the settings', { context: PHONE }, async ({ app, page, session }) => {
  await send(page, session, 'run: ls')
  await raiseTray(session)
  const composer = await compose(session, async () => {
    const stop = session.button(STOP)
    if (await stop.isVisible()) await stop.tap({ timeout: 1_000 }).catch(() => {})
  })
  await composer.getByRole('radio', { name: /like these/ }).check()
  await composer.getByLabel('Where').selectOption('person')
  await composer.getByText(/for you, run ls …/).waitFor()
  await save(composer, (button) => button.tap({ timeout: 1_000 }))
  await session.answer()

  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await send(page, session, 'run: ls -a')
  await session.answer()

  await page.goto(`${app.url}/settings/rules`)
  const rule = page.getByRole('listitem').filter({ hasText: 'for you, run ls …' })
  await rule.waitFor()
  await rule.getByRole('button', { name: /^Take back/ }).tap()
  await rule.waitFor({ state: 'detached' })
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await send(page, session, 'run: ls')
  await raiseTray(session)
})

story('what an admin denies is refused, and the simulator told so before', {}, async ({ app, page, session }) => {
  await session.say('run: curl --version')
  await session.press('Approve: Run a command')
  await session.answer()
  await page.goto(`${app.url}/admin/rules`)
  await page.getByRole('heading', { name: 'New rule' }).waitFor()
  // A command that is left empty is no condition, and nothing is saved.
  await page.getByText('Run without asking', { exact: true }).first().click()
  await page.getByLabel('Tool', { exact: true }).fill('execute_command')
  await page.getByRole('button', { name: 'Add a command' }).first().click()
  await page.getByText('Type the command, or remove this line.').first().waitFor()
  assert.equal(await page.getByRole('button', { name: 'Save the rule' }).getAttribute('aria-disabled'), 'true')
  await page.getByRole('button', { name: 'Remove command 1' }).click()
  await page.getByText('Everything: always, for everybody in this tenant').first().waitFor()
  assert.equal(await page.getByRole('button', { name: 'Save the rule' }).getAttribute('aria-disabled'), 'true')
  await page.getByLabel('Type execute_command to confirm').waitFor()
  await page.getByLabel('Tool', { exact: true }).fill('')
  await page.getByText('Refuse', { exact: true }).click()
  await page.getByRole('button', { name: 'Add a command' }).first().click()
  await page.getByLabel('The command begins with').fill('curl')
  await page.getByText('Refused:').waitFor()
  await page.getByRole('button', { name: 'Try it on recent calls' }).click()
  await page.locator('.count').getByText('It would have changed 1 of your last 1 calls.').waitFor()
  await page.getByRole('button', { name: 'Save the rule' }).click()
  await page.getByText('Always, for everybody in this tenant, never run curl … with any tool.').first().waitFor()
  await isAccessible(page, 'rules for everybody')
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.say('run: date; curl a.example')
  await until('it is refused', async () => /Refused/.test(await session.row('execute_command').innerText()))
})
