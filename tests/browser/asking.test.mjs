/** What MCP servers ask people while their calls run: a form, a page to open, and how far a call is. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after } from 'node:test'
import { isAccessible as check } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const HOSTILE = '<img src=x onerror="document.title=`taken`">'
const FORM = {
  type: 'object',
  properties: {
    zip: { type: 'string', title: 'Zip code', maxLength: 5 },
    age: { type: 'integer', title: 'Age', minimum: 18 },
    colour: { type: 'string', title: 'Colour', oneOf: [{ const: 'r', title: 'Red' }, { const: 'b', title: 'Blue' }] },
    days: { type: 'array', title: 'Days', items: { type: 'string', enum: ['mon', 'tue'] } },
    express: { type: 'boolean', title: 'Express', default: true },
  },
  required: ['zip'],
}

/** Taller than any screen. */
const LONG = { type: 'object', properties: Object.fromEntries(Array.from({ length: 24 }, (_, at) => [`f${at}`, { type: 'string', title: `Field ${at}` }])) }

/** A server over streamable HTTP whose calls say how far they are, ask, and return what they were answered. */
class Post {
  static async start() {
    const post = new Post()
    post.visits = 0
    post.answers = []
    post.calls = new Map()
    post.server = createServer((request, response) => void post.answer(request, response))
    post.server.listen(0, '127.0.0.1')
    await once(post.server, 'listening')
    return post
  }

  get url() {
    return `http://127.0.0.1:${this.server.address().port}`
  }

  get env() {
    return { SPL_MCPS_0_ID: 'post', SPL_MCPS_0_URL: `${this.url}/mcp`, SPL_MCPS_0_SAMPLING: 'true', SPL_SANDBOX: 'none' }
  }

  async answer(request, response) {
    if (request.url.startsWith('/pay')) {
      this.visits += 1
      this.referer = request.headers.referer
      response.writeHead(200, { 'Content-Type': 'text/html' })
      return response.end('<title>Pay</title><script>document.title = String(window.opener)</script>')
    }
    if (request.method !== 'POST') return response.writeHead(405).end()
    let body = ''
    for await (const part of request) body += part
    const { id, method, params, result, error } = JSON.parse(body)
    if (method === undefined && id !== undefined) {
      this.calls.get(id)?.(result ?? error)
      return response.writeHead(202).end()
    }
    if (id === undefined) return response.writeHead(202).end()
    if (method === 'tools/call') return this.call(id, params, response)
    const results = {
      'initialize': { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'post', version: '1' } },
      'tools/list': { tools: ['ask', 'long', 'pay', 'sample'].map((name) => ({ name, description: 'Asks', inputSchema: { type: 'object' } })) },
    }
    response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': '1' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }))
  }

  async call(id, params, response) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    const say = (message) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
    const progress = (progress, message) =>
      say({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress, total: 4, message } })
    const asked = `ask-${id}`
    const answered = new Promise((resolve) => this.calls.set(asked, resolve))
    progress(1, 'Looks for the counter')
    const sample = { messages: [{ role: 'user', content: { type: 'text', text: `What is this? ${HOSTILE}` } }], systemPrompt: 'Be \u202Ebrief. '.repeat(20), maxTokens: 50 }
    const question =
      params.name === 'pay'
        ? { mode: 'url', message: `Pay ${HOSTILE}`, url: `${this.url}/pay?stamp=1`, elicitationId: 'e1' }
        : { mode: 'form', message: `Where do you live? ${HOSTILE}`, requestedSchema: params.name === 'long' ? LONG : FORM }
    if (params.name === 'sample') say({ id: asked, method: 'sampling/createMessage', params: sample })
    else say({ id: asked, method: 'elicitation/create', params: question })
    const answer = await answered
    this.answers.push(answer)
    if (params.name === 'pay') {
      await new Promise((resolve) => (this.paid = resolve))
      say({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } })
      await new Promise((resolve) => (this.end = resolve))
    }
    say({ id, result: { content: [{ type: 'text', text: JSON.stringify(answer) }] } })
    response.end()
  }

  close() {
    this.server.closeAllConnections()
    this.server.close()
  }
}

const model = await ModelStandIn.start()
const post = await Post.start()
after(() => {
  model.close()
  post.close()
})
const env = { ...model.env, ...post.env }

async function begin(session, tool) {
  model.willCall([tool, {}])
  model.willSay('Done')
  await session.composer.fill('go')
  // With a touch keyboard Enter begins a line.
  await session.page.getByRole('button', { name: 'Send', exact: true }).click()
  // On a small screen the cards are in a sheet.
  const { page } = session
  if (page.viewportSize().width < 640) await page.getByRole('button', { name: /waiting\s*Open/ }).click()
  await session.press(/^Approve:/)
}

// Asserts S0.52.
story('a server asks: what is wrong is said at its field, the form survives a reload, and the answer arrives', { env }, async ({ page, session }) => {
  await begin(session, 'ask')
  const form = page.getByRole('form', { name: 'post asks you' })
  await form.getByText(`Where do you live? ${HOSTILE}`).waitFor()
  const bar = page.getByRole('progressbar', { name: /Progress of/ })
  await bar.waitFor()
  assert.equal(await bar.getAttribute('value'), '25')
  await check(page, 'the form')
  assert.match(await form.locator('label').first().innerText(), /^Zip code/, 'fields stand in the order of the server')

  await form.getByRole('button', { name: 'Send to post' }).click()
  const zip = form.getByRole('textbox', { name: /Zip code/ })
  await form.getByRole('alert').filter({ hasText: 'a value is needed' }).waitFor()
  assert.equal(await zip.getAttribute('aria-invalid'), 'true')
  await until('the field has the focus', () => zip.evaluate((field) => field === document.activeElement))
  await check(page, 'the form with what is wrong')

  await page.reload()
  await zip.fill('12345')
  await form.getByRole('textbox', { name: /Age/ }).fill('17')
  await form.getByRole('button', { name: 'Send to post' }).click()
  await form.getByRole('alert').filter({ hasText: '18' }).waitFor()
  await form.getByRole('textbox', { name: /Age/ }).fill('18')
  await form.getByRole('combobox', { name: /Colour/ }).selectOption({ label: 'Blue' })
  await form.getByRole('checkbox', { name: 'tue' }).check()
  await zip.press('Enter')
  await form.waitFor({ state: 'detached' })
  assert.equal(await session.answer(), 'Done')
  assert.deepEqual(post.answers, [{ action: 'accept', content: { zip: '12345', age: 18, colour: 'b', days: ['tue'], express: true } }])
  assert.notEqual(await page.title(), 'taken')
})

// Asserts S0.52.
story('a page is opened by a click alone, and a phone shows its whole address', { env, context: PHONE }, async ({ context, page, session }) => {
  await begin(session, 'pay')
  const card = page.getByRole('group', { name: 'post wants you to open a page' })
  await card.getByText(`${post.url}/pay?stamp=1`).waitFor()
  const { x, width } = await card.boundingBox()
  assert.ok(x >= 0 && x + width <= PHONE.viewport.width)
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.viewport.width)
  await check(page, 'the page to open')
  await page.setViewportSize(PHONE.viewport)
  assert.equal(post.visits, 0, 'nothing was fetched before the click')

  const opening = context.waitForEvent('page')
  await card.getByRole('link', { name: /^Open 127/ }).tap()
  const opened = await opening
  await until('the page has no opener', async () => (await opened.title()) === 'null')
  assert.equal(post.visits, 1)
  assert.equal(post.referer, undefined)
  await card.getByRole('button', { name: 'I am done' }).waitFor()
  await page.bringToFront()
  await check(page, 'the page that was opened')
  await until('the server was told', () => post.paid !== undefined)
  post.paid()
  await card.waitFor({ state: 'detached' })
  await until('the server waits', () => post.end !== undefined)
  post.end()
  assert.equal(await session.answer(), 'Done')
})

for (const viewport of [{ width: 1280, height: 800 }, PHONE.viewport]) {
  story(`the buttons of a long form are on a screen of ${viewport.width} px, whatever is scrolled`, { env, context: { viewport } }, async ({ page, session }) => {
    await begin(session, 'long')
    const form = page.getByRole('form', { name: 'post asks you' })
    const send = form.getByRole('button', { name: 'Send to post' })
    for (const label of ['Field 0', 'Field 12', 'Field 23']) {
      await form.getByRole('textbox', { name: label }).focus()
      const { y, height } = await send.boundingBox()
      assert.ok(y > 0 && y + height <= viewport.height, `${label}: the button is at ${y}`)
      // Nothing lies over the button.
      assert.ok(await send.evaluate((button) => {
        const { x, y, width, height } = button.getBoundingClientRect()
        return button.contains(document.elementFromPoint(x + width / 2, y + height / 2))
      }))
    }
    await send.click()
    assert.equal(await session.answer(), 'Done')
  })
}

async function reachable(page, card, viewport) {
  const { x, width } = await card.boundingBox()
  assert.ok(x >= 0 && x + width <= viewport.width)
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width)
}

for (const [name, context] of [['a wide screen', { viewport: { width: 1280, height: 800 } }], ['a phone', PHONE]]) {
  // Asserts S0.52.
  story(`a model is asked what its person saw, and its answer waits for them, on ${name}`, { env, context }, async ({ page, session }) => {
    model.willCall(['sample', {}])
    model.willSay(`It is a picture. ${HOSTILE}`)
    model.willSay('Done')
    await session.composer.fill('go')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    if (page.viewportSize().width < 640) await page.getByRole('button', { name: /waiting\s*Open/ }).click()
    await session.press(/^Approve:/)

    const card = page.getByRole('group', { name: 'post wants to ask a model' })
    await card.getByText(`What is this? ${HOSTILE}`).waitFor()
    await card.getByText('⟦U+202E⟧').first().waitFor()
    await reachable(page, card, context.viewport)
    await check(page, 'the request')
    await page.setViewportSize(context.viewport)
    await page.screenshot({ path: `screenshots-out/sampling-request-${context.viewport.width}.png` })
    await page.reload()
    const allow = card.getByRole('button', { name: 'Ask the model' })
    await allow.focus()
    await page.keyboard.press('Enter')

    const answer = page.getByRole('group', { name: "The model's answer to post" })
    await answer.getByText(`It is a picture. ${HOSTILE}`).waitFor()
    await reachable(page, answer, context.viewport)
    await check(page, 'the answer')
    await page.setViewportSize(context.viewport)
    await page.screenshot({ path: `screenshots-out/sampling-answer-${context.viewport.width}.png` })
    await answer.getByText('The question').click()
    await answer.getByText(`What is this? ${HOSTILE}`).waitFor()
    await answer.getByRole('button', { name: 'Send to post' }).focus()
    await page.keyboard.press('Enter')
    await answer.waitFor({ state: 'detached' })
    assert.equal(await session.answer(), 'Done')
    const { content, stopReason } = post.answers.at(-1)
    assert.deepEqual([content.text, stopReason], [`It is a picture. ${HOSTILE}`, 'endTurn'])
    assert.notEqual(await page.title(), 'taken')
  })
}
