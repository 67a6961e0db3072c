/** How a page starts: what it needs is asked for at once, and once; nothing stands in the way of the first paint. */
import assert from 'node:assert/strict'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { SessionView } from './support/session.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const paint = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime
/** Files and answers by name without its hash, with how often each was asked for and when. */
const asked = (page) =>
  page.evaluate(() => performance.getEntriesByType('resource').map(({ name, startTime }) => ({
    name: new URL(name).pathname.replace(/-[\w-]{8}(\.\w+)$/, '$1'), startTime,
  })))

story('a session asks for its parts beside the program, each once', {}, async ({ page, problems }) => {
  const warnings = []
  page.on('console', (message) => /preload/.test(message.text()) && warnings.push(message.text()))
  problems.requests.length = 0
  await page.reload()
  await new SessionView(page).isReady()
  const all = await asked(page)
  const parts = all.filter(({ name }) => /\/(me|session\.js|session\.css|parser\.js)$/.test(name))
  const names = parts.map(({ name }) => name).sort()
  assert.deepEqual(names, ['/api/auth/me', '/assets/parser.js', '/assets/session.css', '/assets/session.js'])
  // The program begins after it.
  const painted = await page.evaluate(paint)
  for (const { name, startTime } of parts) assert.ok(startTime < painted, `${name} waited for the program`)
  for (const part of ['/api/auth/me', '/assets/session', '/assets/parser']) {
    const times = problems.requests.filter((url) => new URL(url).pathname.startsWith(part) && url.endsWith('.css') === false)
    assert.equal(times.length, 1, `${part} was asked for ${times.length} times`)
  }
  assert.deepEqual(warnings, [])
})

story('a page of sign-in asks for nothing of a session', { isNew: true }, async ({ app, page }) => {
  await page.goto(`${app.url}/sign-in`)
  await page.getByRole('heading').first().waitFor()
  const names = (await asked(page)).map(({ name }) => name)
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
