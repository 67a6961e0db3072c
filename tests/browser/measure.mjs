/** How the page bears a fast model on a slow machine: 200 tokens a second, the processor slowed to a quarter. */
import { Gateway } from './support/gateway.mjs'
import { ModelStandIn } from './support/model.mjs'
import { SessionView } from './support/session.mjs'
import { browser, setUp } from './support/story.mjs'

const TOKENS = 2_000
const model = await ModelStandIn.start()
const app = await Gateway.start(model.env)
const chromium = await browser()
try {
  const context = await chromium.newContext({ viewport: { width: 1280, height: 800 } })
  await setUp(app, context)
  const page = await context.newPage()
  await page.goto(`${app.url}/s/new`)
  const session = new SessionView(page)
  await session.isReady()
  const words = ['The ', 'agent ', 'reads ', '`a.txt`, ', 'then **writes** ', 'it ', 'again. ', 'See ', '[docs](https://docs.example). ']
  const token = (at) => (at % 120 === 119 ? '\n\n```js\nconst a = 1\n```\n\n- one\n- two\n\n' : at % 45 === 44 ? '\n\n' : words[at % words.length])
  for (const rate of [1, Number(process.env.SLOWED ?? 4)]) {
    model.willStream(Array.from({ length: TOKENS }, (_, at) => token(at)), { paceMs: 5 })
    const cdp = await context.newCDPSession(page)
    await cdp.send('Emulation.setCPUThrottlingRate', { rate })
    await page.evaluate(() => {
      window.tasks = []
      window.keys = []
      window.watcher = new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration)))
      window.watcher.observe({ type: 'longtask' })
      window.events = new PerformanceObserver((list) => window.keys.push(...list.getEntries().filter(({ name }) => name === 'keydown').map(({ duration }) => duration)))
      window.events.observe({ type: 'event', durationThreshold: 16 })
    })
    await session.say(`go ${rate}`)
    await page.waitForSelector('article.said')
    await session.composer.focus()
    let typed = 0
    const began = Date.now()
    while ((await page.locator('form[aria-label="Message"] button:has-text("Stop")').count()) > 0 && Date.now() - began < 60_000) {
      await page.keyboard.press('x')
      typed += 1
      await new Promise((resolve) => setTimeout(resolve, 80))
    }
    const { tasks, keys } = await page.evaluate(() => {
      window.watcher.disconnect()
      window.events.disconnect()
      return { tasks: window.tasks, keys: window.keys }
    })
    await session.composer.fill('')
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: 1 })
    const sorted = [...keys].sort((a, b) => a - b)
    console.log(`slowed ${rate}x: ${TOKENS} tokens in ${((Date.now() - began) / 1000).toFixed(1)} s`)
    console.log(`  tasks over 50 ms: ${tasks.length}, the longest ${Math.round(Math.max(0, ...tasks))} ms`)
    console.log(`  ${typed} keys, from key to paint: over 16 ms ${keys.length}, median of those ${sorted[sorted.length >> 1] ?? 0} ms, 95 % ${sorted[Math.floor(sorted.length * 0.95)] ?? 0} ms, longest ${sorted.at(-1) ?? 0} ms`)
  }
} finally {
  await chromium.close()
  await app.close()
  model.close()
}
