/** The palette leads everywhere by a few letters, and `?` lists every key. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const model = await ModelStandIn.start()
after(() => model.close())
const SCREENS = ['s/new', 'approvals', 'servers', 'servers/new', 'usage', 'settings/profile', 'admin/providers', 'admin/rules', 'admin/system']

class Palette {
  constructor(page) {
    this.page = page
    this.field = page.getByRole('combobox', { name: 'Search and commands' })
  }

  async open(text = '') {
    await this.page.keyboard.press('Control+K')
    await until('the field has the focus', () => this.field.evaluate((field) => field === document.activeElement))
    await this.page.keyboard.type(text)
  }

  option(name) {
    return this.page.getByRole('option').filter({ hasText: name })
  }

  /** Types, and takes the entry that is marked, once it is the one that is meant. */
  async take(text, name) {
    await this.open(text)
    await until(`${name} is marked`, async () => {
      const id = await this.field.getAttribute('aria-activedescendant')
      return id && (await this.page.locator(`#${id}`).innerText()).includes(name)
    })
    await this.page.keyboard.press('Enter')
    await this.field.waitFor({ state: 'detached' })
  }
}

story('a few letters and Enter lead to pages, sections, models and sessions, and what was taken last comes first', { env: model.env }, async ({ app, page, session }) => {
  const palette = new Palette(page)
  model.willSay('A pelican is a bird.')
  await session.say('Name a bird of the sea')
  await session.answer()
  await palette.take('usge', 'Usage')
  await page.waitForURL(`${app.url}/usage`)
  await palette.take('density', 'Settings: Appearance')
  await page.waitForURL(`${app.url}/settings/appearance`)
  await page.getByRole('heading', { name: 'Appearance' }).waitFor()
  await palette.take('bird of', 'Name a bird of the sea')
  await page.waitForURL(/\/s\/ses_/)
  await session.isReady()
  await palette.take('stub', 'stub')
  // By what is said beside the name, with letters that are missing.
  await palette.take('opnai for this sesion', 'stub')
  await palette.take('dark', 'Use the dark theme')
  await page.waitForSelector('html.dark')
  await palette.take('find in', 'Find in this session')
  await page.getByRole('searchbox', { name: 'Find in this session' }).waitFor()

  await palette.open()
  const recent = page.getByRole('group', { name: 'Recent' })
  assert.match(await recent.getByRole('option').first().innerText(), /Find in this session/)
  await page.keyboard.press('Escape')
  await palette.field.waitFor({ state: 'detached' })
})

story('what was said in a session is found, and nothing in it is markup', { env: model.env }, async ({ page, session }) => {
  const palette = new Palette(page)
  model.willSay('A <img src=x onerror="document.title=`taken`"> heron.')
  await session.say('<b>Which</b> bird?')
  await session.answer()
  await palette.open()
  await until('the answer is found', async () => {
    await palette.field.fill('')
    await palette.field.fill('heron')
    await page.getByText(/^\d+ results?$|^No results\.$/).first().waitFor({ state: 'attached' })
    return (await palette.option('heron').count()) > 0
  })
  await palette.option('<b>Which</b>').first().waitFor()
  assert.notEqual(await page.title(), 'taken')
})

story('axe finds nothing in the palette and in the list of keys, which `?` opens on every screen', { env: model.env }, async ({ app, page, session }) => {
  const palette = new Palette(page)
  await palette.open()
  await palette.option('New session').waitFor()
  await isAccessible(page, 'the palette')
  await page.keyboard.type('se')
  await palette.option('Settings').first().waitFor()
  await isAccessible(page, 'the palette with results')
  await page.keyboard.press('Escape')
  const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  for (const screen of SCREENS) {
    await page.goto(`${app.url}/${screen}`)
    await page.getByRole('main').waitFor()
    // In a field it is a sign like any other.
    await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur())
    await page.keyboard.press('?')
    await list.waitFor()
    await list.getByText('Go to the waiting calls').waitFor()
    if (screen === 'usage') await isAccessible(page, 'the list of keys')
    await page.keyboard.press('Escape')
    await list.waitFor({ state: 'detached' })
  }
  await page.goto(`${app.url}/s/new`)
  model.willCall(['write_file', { path: 'a.txt', content: 'a' }])
  await session.say('write a.txt')
  await session.button('Approve: Write a.txt').waitFor()
  await page.keyboard.press('Alt+ArrowUp')
  await until('the focus is on the card', () => page.evaluate(() => document.activeElement?.closest('article.card') !== null))
  await page.keyboard.press('?')
  await list.getByText('Reject, with a reason if you like').waitFor()
  await page.keyboard.press('Escape')
  await list.waitFor({ state: 'detached' })
  await page.goto(`${app.url}/s/new`)
  const composer = page.getByRole('textbox', { name: 'Message Sepal' })
  await composer.fill('why')
  await composer.press('?')
  assert.equal(await composer.inputValue(), 'why?')
  assert.equal(await list.count(), 0)
})

story('each section of the settings has an address, is found by what is in it, and passes axe', { env: model.env }, async ({ app, page }) => {
  await page.goto(`${app.url}/settings`)
  await page.waitForURL(`${app.url}/settings/profile`)
  const nav = page.getByRole('navigation', { name: 'Sections' })
  const links = await nav.getByRole('link').evaluateAll((links) => links.map((link) => link.getAttribute('href')))
  assert.ok(links.length >= 7, links.join())
  for (const link of links) {
    await page.goto(new URL(link, `${app.url}/`).href)
    await page.getByRole('main').getByRole('heading', { level: 2 }).first().waitFor()
    await page.waitForLoadState('networkidle')
    await isAccessible(page, link)
  }
  await nav.getByRole('searchbox', { name: 'Search settings' }).fill('webh')
  await nav.getByRole('link', { name: /Notifications/ }).waitFor()
  assert.equal(await nav.getByRole('link').count(), 1)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${app.url}/settings/notifications`)
})
