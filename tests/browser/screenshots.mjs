/** The pictures of the README, from the real gateway with its demo model. Writes docs/images/. */
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Gateway } from './support/gateway.mjs'
import { SessionView } from './support/session.mjs'
import { browser, setUp } from './support/story.mjs'

const TO = fileURLToPath(new URL('../../docs/images/', import.meta.url))
mkdirSync(TO, { recursive: true })

const app = await Gateway.start({ SPL_LLM_SCRIPTED_PACE_MS: '1' })
const chromium = await browser()
try {
  const desk = await chromium.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light', reducedMotion: 'reduce' })
  await setUp(app, desk)
  const page = await desk.newPage()
  const session = new SessionView(page)
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.say('Run a command and explain its output')
  await session.press('Approve: Run a command')
  await session.answer()
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  await session.say('Make two files and show them')
  await session.press('Approve: Write notes/one.txt')
  await session.counts('1 of 2 waiting for you.')
  await session.row('Approved').waitFor()
  // No button looks as if a hand were on it.
  await page.mouse.move(640, 150)
  await page.screenshot({ path: `${TO}session.png` })

  await page.emulateMedia({ colorScheme: 'dark' })
  await page.waitForSelector('html.dark')
  await page.screenshot({ path: `${TO}session-dark.png` })

  const pocket = await chromium.newContext({
    viewport: { width: 390, height: 844 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
    hasTouch: true,
    isMobile: true,
    deviceScaleFactor: 2,
    storageState: await desk.storageState(),
  })
  const phone = await pocket.newPage()
  await phone.goto(page.url())
  const view = new SessionView(phone)
  await view.tray.getByRole('button', { name: /1 waiting/ }).tap()
  await view.button('Approve: Write notes/two.txt').waitFor()
  await phone.screenshot({ path: `${TO}phone.png` })
} finally {
  await chromium.close()
  await app.close()
}
