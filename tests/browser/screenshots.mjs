/**
 * Pictures from the real gateway with its demo model: those of the README in docs/images/, and every screen of the page,
 * wide and narrow, light and dark, in screenshots-out/screens/, to be looked at.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Gateway } from './support/gateway.mjs'
import { ModelStandIn } from './support/model.mjs'
import { SessionView } from './support/session.mjs'
import { browser, PERSON, setUp } from './support/story.mjs'
import { until } from './support/until.mjs'

const README = fileURLToPath(new URL('../../docs/images/', import.meta.url))
const SCREENS = fileURLToPath(new URL('screenshots-out/screens/', import.meta.url))
const WIDE = { viewport: { width: 1280, height: 800 }, colorScheme: 'light', reducedMotion: 'reduce' }
const NARROW = { ...WIDE, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 }

mkdirSync(README, { recursive: true })
rmSync(SCREENS, { recursive: true, force: true })
mkdirSync(SCREENS, { recursive: true })

const ollama = await ModelStandIn.start()
const app = await Gateway.start({ SPL_LLM_SCRIPTED_PACE_MS: '1', SPL_LLM_LOCAL_SERVERS: `ollama=${ollama.env.OPENAI_BASE_URL}` })
const chromium = await browser()
try {
  const desk = await chromium.newContext(WIDE)
  await doors(desk)
  const page = await desk.newPage()
  const session = new SessionView(page)
  /** Where the tray is a sheet, its card is what is looked at. */
  const openSheet = async () => {
    const peek = page.getByRole('button', { name: /waiting\s*Open/ })
    await session.card.or(peek).first().waitFor()
    if (await peek.isVisible()) await peek.click()
    await session.card.waitFor()
  }
  const openMenu = async () => {
    await openSheet()
    // It closes with a change of the window.
    const entry = session.tray.getByRole('menuitem', { name: /^Edit/ })
    await until('the menu is open', async () => {
      if (!(await entry.isVisible())) await session.button(/^More: /, { exact: false }).click()
      return entry.isVisible()
    })
  }
  const open = async (address, heading = page.getByRole('heading', { level: 1 })) => {
    await page.goto(`${app.url}/${address}`)
    await heading.first().waitFor()
    await page.waitForLoadState('networkidle')
  }

  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await shoot(page, 'session-new')
  await session.say('Run a command and explain its output')
  await session.counts('1 call waits for you.')
  await shoot(page, 'card-command', openSheet)
  await session.press('Approve: Run a command')
  await session.answer()
  await session.row('execute_command').getByRole('button', { expanded: false }).click()
  await shoot(page, 'record')
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.say('Make two files and show them')
  await session.press('Approve: Write notes/one.txt')
  await session.counts('1 of 2 waiting for you.')
  await session.row('Approved').waitFor()
  // No button looks as if a hand were on it.
  await page.mouse.move(640, 150)
  await page.screenshot({ path: `${README}session.png` })
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.waitForSelector('html.dark')
  await page.screenshot({ path: `${README}session-dark.png` })
  await page.emulateMedia({ colorScheme: 'light' })
  const waiting = page.url()

  const pocket = await chromium.newContext({ ...NARROW, storageState: await desk.storageState() })
  const phone = await pocket.newPage()
  await phone.goto(waiting)
  const view = new SessionView(phone)
  await view.tray.getByRole('button', { name: /1 waiting/ }).tap()
  await view.button('Approve: Write notes/two.txt').waitFor()
  await phone.screenshot({ path: `${README}phone.png` })
  await pocket.close()

  await shoot(page, 'card-file', openSheet)
  const text = session.tray.getByRole('textbox').first()
  await until('the edit is open', async () => {
    if (!(await text.isVisible())) await session.choose('Edit: Write notes/two.txt')
    return text.isVisible()
  })
  await text.fill('Another second note.\n')
  await shoot(page, 'card-edit', openSheet)
  await session.tray.getByRole('button', { name: 'Back', exact: true }).click()
  const rule = session.tray.getByRole('group', { name: 'The rule' })
  await until('the rule is open', async () => {
    if (!(await rule.isVisible())) await session.button('Always…: Write notes/two.txt').click()
    return rule.getByText('notes/two.txt').first().isVisible()
  })
  await shoot(page, 'card-always', openSheet)
  await session.tray.getByRole('button', { name: 'Back', exact: true }).click()
  await shoot(page, 'card-menu', openMenu)
  await page.keyboard.press('Escape')
  await open('approvals')
  await shoot(page, 'inbox')
  await page.goto(waiting)
  await session.press('Approve: Write notes/two.txt')
  await session.press('Approve: Read notes/one.txt')
  await session.press('Approve: Read notes/two.txt')
  await session.answer()
  for (const tab of ['Files', 'Changes', 'Context', 'Rules', 'Cost']) {
    await page.goto(`${waiting}?panel=${tab.toLowerCase()}`)
    await page.getByRole('tabpanel', { name: tab }).locator('> *').first().waitFor()
    await page.waitForLoadState('networkidle')
    if (tab === 'Files') {
      await page.getByRole('treeitem', { name: /notes/ }).click()
      await page.getByRole('treeitem', { name: /one\.txt/ }).click()
      await page.getByRole('region', { name: 'Preview of one.txt' }).getByText('The first note.').waitFor()
    }
    await shoot(page, `panel-${tab.toLowerCase()}`)
  }

  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await page.getByRole('button', { name: /^Model: / }).click()
  await page.getByText('New sessions start with').waitFor()
  await shoot(page, 'models')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+K')
  await page.getByRole('option').first().waitFor()
  await shoot(page, 'palette')
  await page.keyboard.press('Escape')
  await page.getByRole('textbox', { name: 'Message Sepal' }).blur()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await shoot(page, 'keys')
  await page.keyboard.press('Escape')
  await shoot(page, 'sessions', async (size) => {
    if (size === 'narrow') await page.getByRole('button', { name: 'Show sessions' }).click()
  })
  for (const section of ['profile', 'appearance', 'notifications', 'keyboard', 'rules', 'keys', 'skills', 'sharing', 'about']) {
    await open(`settings/${section}`)
    await shoot(page, `settings-${section}`)
  }
  await open('servers')
  await shoot(page, 'servers')
  await open('servers/new')
  await page.getByLabel('Configuration, command line or address').fill('{ "mcpServers": { "tracker": { "command": "no-such-program", "env": { "TRACKER_TOKEN": "swordfish-7" } } } }')
  await page.getByText('Can be read by: this server only.').waitFor()
  await shoot(page, 'server-new')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('link', { name: 'tracker' }).click()
  await page.getByText('Can be read by: this server only.').waitFor()
  await shoot(page, 'server')
  await open('usage')
  await shoot(page, 'usage')
  await open('admin/providers')
  await page.getByRole('button', { name: 'Add a provider' }).click()
  await page.getByText("A model server runs on Sepal's machine.").waitFor()
  await shoot(page, 'providers')
  await app.cli('admin', 'tenant', 'add', 'acme')
  for (const address of ['admin/people', 'admin/tenants', 'admin/rules', 'admin/audit', 'admin/system', 'no/such/page']) {
    await open(address)
    await shoot(page, address.replaceAll('/', '-'))
  }
} finally {
  await chromium.close()
  await app.close()
  ollama.close()
}

/** The first start, up to the person who is signed in. */
async function doors(context) {
  const page = await context.newPage()
  await page.goto(await app.setupLink())
  await page.getByLabel('Password').waitFor()
  await shoot(page, 'welcome')
  await setUp(app, context)
  await page.goto(`${app.url}/welcome`)
  await page.getByText("A model server runs on Sepal's machine.").waitFor()
  await shoot(page, 'welcome-model')
  await page.getByRole('button', { name: 'Continue with the demo model' }).click()
  await page.getByRole('link', { name: 'Open a session' }).waitFor()
  await shoot(page, 'welcome-try')
  const stranger = await context.browser().newContext(WIDE)
  const door = await stranger.newPage()
  await door.goto(`${app.url}/sign-in`)
  await door.getByLabel('Name').fill(PERSON.name)
  await shoot(door, 'sign-in')
  await stranger.close()
  await page.close()
}

/** One screen in both themes and both widths; `prepare` opens what a change of the width closes. */
async function shoot(page, name, prepare = async () => {}) {
  for (const [size, { viewport }] of Object.entries({ wide: WIDE, narrow: NARROW })) {
    await page.setViewportSize(viewport)
    await prepare(size)
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await page.waitForFunction((isDark) => document.documentElement.classList.contains('dark') === isDark, colorScheme === 'dark')
      await page.screenshot({ path: `${SCREENS}${name}-${size}-${colorScheme}.png` })
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(WIDE.viewport)
}
