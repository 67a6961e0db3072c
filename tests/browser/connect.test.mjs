/** A person connects to a server that wants it: from its page, and from the card of a call that waits. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible as check } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { Provider } from './support/provider.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const model = await ModelStandIn.start()
const provider = await Provider.start()
after(() => {
  model.close()
  provider.close()
})
const env = { ...model.env, ...provider.env('notes') }

/** Connects from the server's page, which is where its tools become known. */
async function connectOnce(app, page) {
  await page.goto(`${app.url}/servers/notes`)
  await page.getByText('You are not connected.').waitFor()
  await page.getByRole('button', { name: 'Connect to notes' }).click()
  await page.getByText(/Connected since/).waitFor()
  assert.equal(new URL(page.url()).pathname, '/servers/notes')
  await until('the tools are known', async () => {
    const { toolCount } = await (await page.request.get(`${app.url}/api/mcp/notes`)).json()
    return toolCount === 2
  })
}

/** Lets the model call a tool of the server in a new session. */
async function callOf(tool, { app, page, session }) {
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  model.replies = []
  model.willCall([tool, {}])
  await session.composer.fill(`call ${tool}`)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  // On a small screen the cards are in a sheet.
  if (page.viewportSize().width < 640) await page.getByRole('button', { name: /waiting\s*Open/ }).click()
  await session.press(/^Approve:/)
}

for (const [device, context] of [['a desk', {}], ['a phone', PHONE]]) {
  story(`a call that meets a server which wants its person waits for them at ${device}, and goes on`, { env, context }, async (parts) => {
    const { app, page, session } = parts
    await connectOnce(app, page)
    if (device === 'a desk') await check(page, 'a server that the person is connected to')
    await page.getByRole('button', { name: 'Disconnect from notes' }).click()
    await page.getByText('You are not connected.').waitFor()

    const before = await provider.counts()
    await callOf('whoami', parts)
    const card = page.getByRole('region', { name: 'Servers that need you to sign in' })
    await card.getByText('notes needs you to sign in. A call waits for it.').waitFor()
    await check(page, 'the card of a server')
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
    assert.equal((await provider.counts()).calls, before.calls)
    const { pathname } = new URL(page.url())
    model.willSay('Seen')
    const connect = card.getByRole('button', { name: 'Connect to notes' })
    await connect.focus()
    await page.keyboard.press('Enter')
    assert.equal(await session.answer(), 'Seen')
    const back = new URL(page.url())
    assert.deepEqual([back.pathname, back.hash], [pathname, ''])
    await card.waitFor({ state: 'detached' })
    assert.equal((await provider.counts()).calls, before.calls + 1)
    const sent = JSON.stringify(model.requests.at(-1))
    assert.ok(sent.includes('whoami for somebody'), sent)
  })
}

story('a server that wants more says what, and whoever does not want to goes on without it', { env }, async (parts) => {
  const { app, page, session } = parts
  await connectOnce(app, page)
  const before = await provider.counts()
  await callOf('publish', parts)
  const card = page.getByRole('region', { name: 'Servers that need you to sign in' })
  await card.getByText('notes needs more access: write.').waitFor()
  model.willSay('Pity')
  await card.getByRole('button', { name: 'Not now: notes' }).click()
  assert.equal(await session.answer(), 'Pity')
  await card.waitFor({ state: 'detached' })
  assert.equal((await provider.counts()).calls, before.calls)
  // What they had allowed stays.
  await page.goto(`${app.url}/servers/notes`)
  await page.getByText(/Connected since/).waitFor()
})
