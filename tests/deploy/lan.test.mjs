/** Plain http at a name of somebody's own network: browsers trust it less than they trust localhost. */
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Gateway } from '../browser/support/gateway.mjs'
import { SessionView } from '../browser/support/session.mjs'
import { watch } from '../browser/support/story.mjs'

const { chromium } = createRequire(new URL('../browser/package.json', import.meta.url))('playwright-core')
const HOST = 'sepal.test'
const PASSWORD = 'correct horse battery staple'

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

test('the page at http://sepal.test: welcome, "Not encrypted", an answer, a reload', async () => {
  const port = await freePort()
  const base = `http://${HOST}:${port}/`
  const gateway = new Gateway(mkdtempSync(join(tmpdir(), 'sepal-lan-')), { SPL_PUBLIC_URL: base, SPL_SANDBOX: 'none' })
  // Only this browser knows the name; to everybody else it means nothing.
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH || '/usr/bin/chromium',
    args: [`--host-resolver-rules=MAP ${HOST} 127.0.0.1`, ...(process.getuid() === 0 ? ['--no-sandbox'] : [])],
  })
  try {
    await gateway.launch(port)
    const page = await browser.newPage()
    const problems = watch(page)
    const session = new SessionView(page)
    const link = await gateway.setupLink()
    assert.ok(link.startsWith(base), `the link leads to the public address: ${link}`)
    await page.goto(link)
    assert.equal(await page.evaluate(() => isSecureContext), false)
    await page.getByLabel('Name').fill('ana')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Create my account' }).click()
    await page.getByText('2 of 3: A model').waitFor()
    await page.goto(`${base}s/new`)
    await session.isReady()
    await page.getByText('Not encrypted').first().waitFor()
    await session.say('hello')
    const said = await session.answer()
    assert.notEqual(said, '')
    await page.reload()
    await session.isReady()
    assert.equal(await session.answer(), said)

    await page.context().clearCookies()
    await page.goto(`${base}sign-in`)
    await page.getByLabel('Name').fill('ana')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await session.isReady()
    assert.deepEqual(problems.errors, [])
  } finally {
    await browser.close()
    await gateway.close()
  }
})
