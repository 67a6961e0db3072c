/** `story(name, async ({ app, page, … }) => …)`: a gateway, a browser and a signed-in person, all cleaned up. */
import { mkdirSync } from 'node:fs'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { overflow } from './axe.mjs'
import { Gateway } from './gateway.mjs'
import { SessionView } from './session.mjs'
import { DEADLINE_MS } from './until.mjs'

export const PERSON = { name: 'ana', password: 'a long enough password' }
const SHOTS = fileURLToPath(new URL('../screenshots-out/', import.meta.url))

/** More arguments of the browser, for a file that wants some before its first story. */
export const launchArguments = []

let launched

export function browser() {
  launched ??= chromium.launch(launchOptions())
  return launched
}

export function launchOptions() {
  const usual = process.env.CHROMIUM_ARGS ?? (process.getuid?.() === 0 ? '--no-sandbox' : '')
  return {
    executablePath: process.env.CHROMIUM_PATH || '/usr/bin/chromium',
    // Scrollbars take room on most desktops, and a page that scrolls by mistake shows only there.
    ignoreDefaultArgs: ['--hide-scrollbars'],
    args: [...usual.split(' ').filter(Boolean), ...launchArguments],
  }
}

/** Must be called once by every file whose tests use the browser. */
export function closeBrowserAtTheEnd() {
  after(async () => (await launched)?.close())
}

/** Sets the installation up through the API; the cookie lands in the context. */
export async function setUp(app, context) {
  const secret = (await app.setupLink()).split('#')[1]
  const answer = await context.request.post(`${app.url}/api/auth/setup`, { data: { secret, ...PERSON } })
  if (!answer.ok()) throw new Error(`setup: ${answer.status()} ${await answer.text()}`)
}

/**
 * `env`: settings of the gateway, or a function that makes them. `context`: options of the browser context.
 * `isNew`: the installation is not set up, and nothing is opened.
 */
export function story(name, { env = {}, context: options = {}, isNew = false } = {}, tell) {
  test(name, async (t) => {
    const app = await Gateway.start(typeof env === 'function' ? env() : env)
    let context
    try {
      context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options })
      context.setDefaultTimeout(DEADLINE_MS)
      const page = await context.newPage()
      const problems = watch(page)
      const session = new SessionView(page)
      if (!isNew) {
        await setUp(app, context)
        await page.goto(`${app.url}/s/new`)
        await session.isReady()
      }
      await tell({ t, app, context, page, session, problems })
      for (const shown of context.pages()) {
        const downwards = await overflow(shown).catch(() => 0)
        if (downwards > 0) throw new Error(`the frame of the page scrolls by ${downwards} px`)
      }
      if (problems.errors.length > 0) throw new Error(`the page had errors:\n${problems.errors.join('\n')}`)
    } catch (error) {
      await shoot(context, name)
      error.message += app.log ? `\n--- the gateway's log:\n${app.log.split('\n').slice(-20).join('\n')}` : ''
      throw error
    } finally {
      await context?.close()
      await app.close()
    }
  })
}

/** Whatever goes wrong inside the page, and every request that leaves the origin. */
export function watch(page) {
  const problems = { errors: [], requests: [] }
  page.on('pageerror', (error) => problems.errors.push(String(error)))
  page.on('console', (message) => {
    const isViolation = /Content Security Policy|\[Vue|Uncaught/.test(message.text())
    if (message.type() === 'error' && isViolation) problems.errors.push(message.text())
  })
  page.on('request', (request) => problems.requests.push(request.url()))
  return problems
}

async function shoot(context, name) {
  mkdirSync(SHOTS, { recursive: true })
  for (const [index, page] of (context?.pages() ?? []).entries()) {
    const path = `${SHOTS}${name.replace(/\W+/g, '-')}-${index}.png`
    await page.screenshot({ path }).catch(() => {})
  }
}
