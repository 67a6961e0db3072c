/** What MCP servers offer beside tools: resources by `@`, prompts by `/`, chosen with the keyboard alone. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after } from 'node:test'
import { isAccessible as check } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const HOSTILE = '<img src=x onerror="document.title=`taken`">'

/** A server over streamable HTTP with a note, a pattern and a prompt. It tells those who listen of changes. */
class Library {
  static async start() {
    const library = new Library()
    library.listeners = new Set()
    library.read = []
    library.server = createServer((request, response) => void library.answer(request, response))
    library.server.listen(0, '127.0.0.1')
    await once(library.server, 'listening')
    return library
  }

  get env() {
    const { port } = this.server.address()
    return { SPL_MCPS_0_ID: 'lib', SPL_MCPS_0_URL: `http://127.0.0.1:${port}/mcp`, SPL_SANDBOX: 'none' }
  }

  async answer(request, response) {
    if (request.method === 'GET') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.write(': here\n\n')
      this.listeners.add(response)
      response.on('close', () => this.listeners.delete(response))
      return
    }
    let body = ''
    for await (const part of request) body += part
    if (request.method !== 'POST') return response.end()
    const { id, method, params } = JSON.parse(body)
    if (id === undefined) return response.writeHead(202).end()
    const result = this.result(method, params ?? {})
    const error = { code: -32002, message: 'there is no such thing' }
    response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': '1' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }))
  }

  result(method, params) {
    switch (method) {
      case 'initialize':
        return {
          protocolVersion: '2025-06-18',
          capabilities: { resources: { subscribe: true }, prompts: {}, completions: {} },
          serverInfo: { name: 'library', version: '1' },
        }
      case 'resources/list':
        return { resources: [{ uri: 'demo://gone', name: 'gone', title: 'Gone' }, { uri: 'demo://note', name: 'note', title: 'The note', description: HOSTILE }] }
      case 'resources/templates/list':
        return { resourceTemplates: [{ uriTemplate: 'demo://notes/{id}', name: 'One of the notes' }] }
      case 'resources/read':
        this.read.push(params.uri)
        return params.uri === 'demo://gone' ? null : { contents: [{ uri: params.uri, text: `${HOSTILE} read ${this.read.length}` }] }
      case 'resources/subscribe':
        return {}
      case 'prompts/list':
        return { prompts: [{ name: 'review', description: 'Looks at code', arguments: [{ name: 'language', required: true }] }] }
      case 'prompts/get':
        return { messages: [{ role: 'user', content: { type: 'text', text: `Review my ${params.arguments.language} ${HOSTILE}` } }] }
      case 'completion/complete':
        return { completion: { values: ['Rust', 'Ruby'] } }
    }
    return null
  }

  changed(uri) {
    const said = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
    for (const listener of this.listeners) listener.write(`data: ${said}\n\n`)
  }

  close() {
    this.server.closeAllConnections()
    this.server.close()
  }
}

const model = await ModelStandIn.start()
const library = await Library.start()
after(() => {
  model.close()
  library.close()
})
const env = { ...model.env, ...library.env }

// Asserts S0.52.
story('a resource is found by @ and the keyboard, goes with the message, and says when it changed', { env }, async ({ page, session }) => {
  await session.composer.focus()
  await page.keyboard.type('Look at @')
  const list = page.getByRole('listbox', { name: 'Resources of MCP servers' })
  await list.getByRole('option', { name: /The note/ }).waitFor()
  await check(page, 'the list')
  await page.keyboard.type('gone')
  await list.getByRole('option', { name: /The note/ }).waitFor({ state: 'detached' })
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Gone of lib' }).getByRole('alert').filter({ hasText: 'there is no such thing' }).waitFor()
  assert.equal(await session.composer.inputValue(), 'Look at @gone')
  for (const _ of 'gone@') await page.keyboard.press('Backspace')
  await page.keyboard.type('@note')
  await list.getByRole('option', { name: /The note/ }).waitFor()
  await page.keyboard.press('Tab')
  const chips = page.getByRole('form', { name: 'Message' }).getByRole('list', { name: 'Attached files' })
  await chips.getByText('note').waitFor()
  await list.waitFor({ state: 'detached' })
  assert.equal(await session.composer.inputValue(), 'Look at ')
  assert.equal(await page.evaluate(() => document.activeElement.id), 'message')

  library.changed('demo://note')
  await chips.getByText('Changed since it was read').waitFor()
  const before = library.read.length
  await chips.getByRole('button', { name: 'Read note again' }).press('Enter')
  await chips.getByText('Changed since it was read').waitFor({ state: 'detached' })
  assert.equal(library.read.length, before + 1)

  model.willSay('Seen')
  await session.composer.press('Enter')
  assert.equal(await session.answer(), 'Seen')
  const sent = JSON.stringify(model.requests.at(-1))
  assert.ok(sent.includes(`read ${library.read.length}`), sent)
  assert.notEqual(await page.title(), 'taken')
})

// Asserts S0.52.
story('a prompt is found by /, filled in, shown, and sent only by the person', { env }, async ({ page, session }) => {
  await session.composer.focus()
  await page.keyboard.type('/')
  const list = page.getByRole('listbox', { name: 'Prompts of MCP servers' })
  await list.getByRole('option', { name: /review/ }).waitFor()
  await page.keyboard.press('Enter')
  const form = page.getByRole('dialog', { name: 'review of lib' })
  const asked = model.requests.length
  await form.getByRole('combobox', { name: /language/ }).or(form.getByLabel(/language/)).first().waitFor()
  await page.keyboard.press('Enter')
  await form.getByRole('alert').filter({ hasText: 'Fill in language first.' }).waitFor()
  await page.keyboard.type('Rust')
  await page.keyboard.press('Enter')
  await form.getByText(`Review my Rust ${HOSTILE}`).waitFor()
  await check(page, 'the prompt')
  await page.keyboard.press('Enter')
  await form.waitFor({ state: 'detached' })
  assert.equal(await session.composer.inputValue(), `Review my Rust ${HOSTILE}`)
  assert.equal(model.requests.length, asked)
  model.willSay('Reviewed')
  await session.composer.press('Enter')
  assert.equal(await session.answer(), 'Reviewed')

  // Escape closes the list and keeps the text.
  await session.composer.focus()
  await page.keyboard.type('/')
  await list.waitFor()
  await page.keyboard.press('Escape')
  await list.waitFor({ state: 'detached' })
  assert.equal(await session.composer.inputValue(), '/')
})

/** Lines of everyday work with signs that could open a list, in the middle of words and of paths. */
const LINES = [
  'use npm i @vue/core now',
  '/etc/hosts is a file',
  '/',
  '// a comment of the parser',
  '/tmp/out.txt and /tmp/err.txt',
  '@',
  '@ 5 dollars a piece',
  'write to ana@example.org today',
  'ask @ana and @bo, then @everybody',
  'git show HEAD@{1} and main@origin',
  'scp a.txt root@10.0.0.1:/srv/',
  'docker pull ghcr.io/a/b@sha256:0123',
  '@types/node @types/react @vue/compiler-sfc',
  '@media (max-width: 639px) { a { color: red } }',
  '@Override public void run() {}',
  '@app.get("/users/{id}") is a decorator',
  'either/or, and/or, 24/7',
  'https://example.org/@ana/notes?x=@1',
  '  /indented is no prompt',
  'the ratio is 3 / 4 @ 20 degrees',
  '/usr/bin/env node --version',
  '/help me, is no prompt here',
  '@@ -1,4 +1,4 @@ is a hunk of a diff',
  'cd ~/src && ls ./@scope/*',
  'mail me @home or at work/',
  '/* a comment */',
  '</div> and </p>',
  'a@b @c d@e @',
  '/deploy',
  'npx @modelcontextprotocol/inspector /bin/server',
]

story('lines with @ and / are typed as they are, at speed, with Escape anywhere', { env }, async ({ page, session }) => {
  const isAsked = new Promise((resolve) => page.on('response', (response) => response.url().endsWith('/resources') && resolve()))
  await session.composer.focus()
  await page.keyboard.type('@')
  await isAsked
  for (const line of LINES) {
    await session.composer.fill('')
    await page.keyboard.type(line)
    assert.equal(await session.composer.inputValue(), line)
    await page.keyboard.press('Escape')
    await page.keyboard.type('!')
    assert.equal(await session.composer.inputValue(), `${line}!`)
    assert.equal(await page.evaluate(() => document.activeElement.id), 'message')
  }
})

// Asserts S0.52.
story('a phone: the list fits, and a pattern asks for its parts', { env, context: PHONE }, async ({ page, session }) => {
  await session.composer.focus()
  await page.keyboard.type('@')
  const list = page.getByRole('listbox', { name: 'Resources of MCP servers' })
  await list.getByRole('option', { name: /One of the notes/ }).tap()
  const form = page.getByRole('dialog', { name: 'One of the notes of lib' })
  const { x, width } = await form.boundingBox()
  assert.ok(x >= 0 && x + width <= PHONE.viewport.width)
  await page.keyboard.type('a b')
  await form.getByRole('button', { name: 'Read and attach' }).tap()
  await form.waitFor({ state: 'detached' })
  assert.equal(library.read.at(-1), 'demo://notes/a%20b')
})
