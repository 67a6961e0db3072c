/** The session page as a person sees it: every method names something on the screen. */
import { DEADLINE_MS, until } from './until.mjs'

/** The page ignores decisions for 400 ms after a change, so a click is repeated until it counts. */
const CLICK_MS = 1_000

export class SessionView {
  constructor(page) {
    this.page = page
    this.log = page.getByRole('log', { name: 'Conversation' })
    this.tray = page.getByRole('region', { name: 'Waiting for you' })
    this.card = this.tray.locator('article.card')
    this.composer = page.getByRole('textbox', { name: 'Message Sepal' })
    this.stopButton = page.getByRole('form', { name: 'Message' }).getByRole('button', { name: 'Stop' })
  }

  async isReady() {
    await this.page.getByRole('link', { name: 'Connected' }).waitFor()
  }

  /** The address of the session that is shown, once the page has one: a new session gets it after its first message. */
  async address() {
    await until('the session has its address', async () => /^\/s\/ses_\w+$/.test(new URL(this.page.url()).pathname))
    return this.page.url()
  }

  async id() {
    return new URL(await this.address()).pathname.split('/').at(-1)
  }

  /** Opens the tray on a narrow screen, where it is one line, once the page knows how narrow the screen is. */
  async openSheet() {
    const peek = this.tray.locator('.tray-peek-button')
    await peek.or(this.page.locator('.tray-sheet')).first().waitFor()
    if (await peek.isVisible()) await peek.click()
    await this.card.waitFor()
  }

  async say(text) {
    await this.composer.fill(text)
    await this.composer.press('Enter')
  }

  /** Something that the page says outside of its announcers. */
  says(text) {
    return this.page.getByRole('main').getByText(text)
  }

  /** Calls of the transcript by a text of their row. */
  row(text) {
    return this.log.locator('.row').filter({ hasText: text })
  }

  button(name, options = {}) {
    return this.tray.getByRole('button', { name, exact: true, ...options })
  }

  /** Presses a button of the tray until it is gone, which is when the decision was taken. */
  async press(name) {
    const button = this.button(name)
    await button.waitFor()
    await until(`"${name}" was taken`, async () => {
      if (!(await button.isVisible())) return true
      await button.click({ timeout: CLICK_MS }).catch(() => {})
      return !(await button.isVisible())
    })
  }

  /** Chooses an entry of the open card's menu. */
  async choose(name) {
    const entry = this.tray.getByRole('menuitem', { name })
    await until(`"${name}" was chosen`, async () => {
      if (!(await entry.isVisible())) await this.button(/^More: /, { exact: false }).click({ timeout: CLICK_MS }).catch(() => {})
      return entry.click({ timeout: CLICK_MS }).then(() => true, () => false)
    })
  }

  /** Until the tray says this in its header. */
  async counts(text) {
    await this.tray.getByText(text, { exact: false }).first().waitFor()
  }

  async isQuiet() {
    await this.tray.waitFor({ state: 'hidden' })
  }

  /** The finished answers, oldest first. */
  answers() {
    return this.log.locator('article.said').filter({ has: this.page.locator('.actions') })
  }

  /** Until the nth answer is finished; gives its text. */
  async answer(nth = 1, within = DEADLINE_MS) {
    const answer = this.answers().nth(nth - 1)
    await answer.waitFor({ state: 'attached', timeout: within })
    return (await answer.locator('.md').first().innerText()).trim()
  }

  /** The whole text of the transcript without times, for "nothing lost, nothing twice". */
  async text() {
    return this.log.evaluate((log) =>
      [...log.querySelectorAll('[data-key]')].map((row) => {
        const copy = row.cloneNode(true)
        for (const part of copy.querySelectorAll('time, .actions, .margin, .row-end')) part.remove()
        return copy.textContent.replace(/\s+/g, ' ').trim()
      }),
    )
  }

  /** What the card in front is about. */
  async heading() {
    return (await this.tray.locator('.tray-open').getByRole('heading', { level: 3 }).innerText()).trim()
  }
}

/** The commands that the page sent over its socket, as `[name, payload]`. */
export function sentCommands(page) {
  const sent = []
  page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) => {
      const event = /^42\d*(\[.*\])$/s.exec(String(payload))?.[1]
      if (event) sent.push(JSON.parse(event))
    })
  })
  return sent
}
