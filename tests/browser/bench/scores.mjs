/** What Lighthouse says of the pages that people open first: the medians of several loads with an empty cache. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import lighthouse, { desktopConfig } from 'lighthouse'
import { chromium } from 'playwright-core'
import { launchOptions } from '../support/story.mjs'

const LOADS = Number(process.env.LOADS ?? 5)
const BOUNDS = { mobile: { score: 95, blockedMs: 150 }, desktop: { score: 99, blockedMs: 150 } }

/** `addresses`: by name. Gives `{ name, device, score, paintMs, blockedMs, bound, holds }` of each as it is known. */
export async function* scores(addresses, storageState) {
  const folder = mkdtempSync(join(tmpdir(), 'sepal-scores-'))
  const port = await freePort()
  const { args, ...launch } = launchOptions()
  const context = await chromium.launchPersistentContext(folder, { ...launch, args: [...args, `--remote-debugging-port=${port}`] })
  try {
    if (storageState) await context.addCookies(storageState.cookies)
    for (const [name, url] of Object.entries(addresses)) {
      for (const device of ['mobile', 'desktop']) yield await score({ name, url, device, port, context })
    }
  } finally {
    await context.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function score({ name, url, device, port, context }) {
  const loads = []
  for (let n = 0; n < LOADS; n++) {
    await emptyCache(context)
    const { lhr } = await lighthouse(url, { port, onlyCategories: ['performance'], disableStorageReset: true, logLevel: 'error' }, device === 'desktop' ? desktopConfig : undefined)
    const of = (audit) => lhr.audits[audit].numericValue
    loads.push({ score: Math.round(lhr.categories.performance.score * 100), paintMs: of('largest-contentful-paint'), blockedMs: of('total-blocking-time') })
  }
  const median = (key) => loads.map((load) => load[key]).sort((a, b) => a - b)[loads.length >> 1]
  const [score, paintMs, blockedMs] = ['score', 'paintMs', 'blockedMs'].map(median)
  const bound = BOUNDS[device]
  return { name, device, score, paintMs, blockedMs, bound, holds: score >= bound.score && blockedMs <= bound.blockedMs }
}

/** Its cookies stay, because they are the person who is signed in. */
async function emptyCache(context) {
  const page = await context.newPage()
  const cdp = await context.newCDPSession(page)
  await cdp.send('Network.clearBrowserCache')
  await page.close()
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}
