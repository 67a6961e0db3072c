/** How a page starts: what it needs is asked for at once, and once; nothing stands in the way of the first paint. */
import assert from 'node:assert/strict'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { SessionView } from './support/session.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const paint = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime

/** The name of a file without its hash, or of what the API answers. */
const nameOf = (url) => new URL(url).pathname.replace(/-[\w-]{8}(\.\w+)$/, '$1')
const PARTS = ['/api/auth/me', '/assets/parser.js', '/assets/session.css', '/assets/session.js']

story('a session asks for its parts beside the program, each once', {}, async ({ page, problems }) => {
  const warnings = []
  page.on('console', (message) => /preload/.test(message.text()) && warnings.push(message.text()))
  problems.requests.length = 0
  const parts = () => problems.requests.map(nameOf).filter((name) => PARTS.includes(name)).sort()
  // The program is held back until all of them were asked for.
  await page.route(/\/assets\/base-[^/]*\.js$/, async (route) => {
    await until('the parts are asked for', () => parts().length >= PARTS.length)
    await route.continue()
  })
  await page.reload()
  await new SessionView(page).isReady()
  assert.deepEqual(parts(), PARTS)
  assert.deepEqual(warnings, [])
})

story('a page of sign-in asks for nothing of a session', { isNew: true }, async ({ app, page, problems }) => {
  await page.goto(`${app.url}/sign-in`)
  await page.getByRole('heading').first().waitFor()
  const names = problems.requests.map(nameOf)
  assert.deepEqual(names.filter((name) => /session|parser/.test(name)), [])
})

story('the first paint comes before the program', {}, async ({ app, page }) => {
  // Whatever of the program comes early marks the moment; the paint must be older.
  await page.addInitScript(() => {
    new MutationObserver(() => {
      if (!window.mountedAt && document.querySelector('#app .app')) window.mountedAt = performance.now()
    }).observe(document, { childList: true, subtree: true })
  })
  await page.goto(`${app.url}/s/new`)
  await until('the page is there', () => page.evaluate(() => window.mountedAt))
  const [painted, mounted] = [await page.evaluate(paint), await page.evaluate(() => window.mountedAt)]
  assert.ok(painted !== undefined && painted <= mounted, `painted at ${painted}, mounted at ${mounted}`)
})

story('a page that nobody looks at starts as well', {}, async ({ app, context }) => {
  const page = await context.newPage()
  // Stands for a hidden tab, which a headless browser does not have: it paints nothing that it would tell.
  await page.addInitScript(() => {
    window.PerformanceObserver = class {
      observe() {}
      disconnect() {}
    }
  })
  await page.goto(`${app.url}/s/new`)
  await new SessionView(page).isReady()
})

story("the page's own styles go over the reset of the browser's", {}, async ({ page, session }) => {
  await session.composer.fill('x')
  const drawn = await page.evaluate(() => {
    const of = (selector) => getComputedStyle(document.querySelector(selector))
    return { column: of('form.column').paddingInlineStart, send: of('form .action-solid').paddingInlineStart, link: of('nav a.action').textDecorationLine }
  })
  assert.deepEqual(drawn, { column: '16px', send: '10px', link: 'none' })
})
