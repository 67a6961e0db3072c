/** The gateway with a real llama.cpp behind it: what no stand-in of ours can get wrong together with us. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { io } from 'socket.io-client'
import { Gateway } from '../support/gateway.mjs'
import { until } from '../support/until.mjs'

const SERVER = process.env.SEPAL_TEST_LLAMA
assert.ok(SERVER, 'SEPAL_TEST_LLAMA names the server: run this by `llama-server FOLDER node --test …`')

/** Tokens of the server's window. */
const WINDOW = 2048

async function start(settings = {}) {
  const app = await Gateway.start({
    LLM_PROVIDER: 'openai-compatible',
    OPENAI_BASE_URL: SERVER,
    SPL_LLM_MODEL: 'tiny',
    SPL_LLM_MAX_TOKENS: '48',
    SPL_SANDBOX: 'none',
    ...settings,
  })
  const token = await app.addPerson('ana')
  return { app, token }
}

/** A session, with everything that it tells. */
async function open(app, token) {
  const heard = []
  const socket = io(app.url, { auth: { token }, transports: ['websocket'], reconnection: false, forceNew: true })
  socket.onAny((name, ...args) => heard.push({ name, args, last: args.at(-1) ?? {} }))
  /** The nth event of one of these names. */
  const wait = (names, nth = 1) => until(`${names} number ${nth}`, () => heard.filter(({ name }) => [names].flat().includes(name))[nth - 1], 60_000)
  await wait('system:ready')
  const ask = (name, payload) => socket.timeout(10_000).emitWithAck(name, payload)
  return { socket, heard, wait, ask }
}

test('its models are listed, an answer streams, and what it used is what the server counted', async () => {
  const { app, token } = await start()
  try {
    const listed = await fetch(`${app.url}/api/models/available`, { headers: { authorization: `Bearer ${token}` } })
    const { models } = await listed.json()
    assert.ok(models.some(({ id }) => id === 'tiny'), JSON.stringify(models))
    const { socket, heard, wait, ask } = await open(app, token)
    assert.equal((await ask('message', { text: 'say something' })).ok, true)
    const { args, last } = await wait('agent:response')
    const pieces = heard.filter(({ name }) => name === 'agent:delta')
    assert.ok(pieces.length > 1, `${pieces.length} pieces`)
    assert.equal(pieces.map((piece) => piece.args[0]).join(''), args[0])
    assert.ok(['length', 'stop'].includes(last.finish), last.finish)
    assert.equal(last.usage.isEstimated, false)
    assert.ok(last.usage.inputTokens > 10 && last.usage.outputTokens > 0, JSON.stringify(last.usage))
    socket.disconnect()
  } finally {
    await app.close()
  }
})

test('an answer is stopped in its middle, and the session goes on', async () => {
  const { app, token } = await start({ SPL_LLM_MAX_TOKENS: '1500' })
  try {
    const { socket, wait, ask } = await open(app, token)
    await ask('message', { text: 'go on and on' })
    await wait('agent:delta')
    assert.equal((await ask('agent:cancel', {})).ok, true)
    // A short answer may have ended before that.
    await wait(['agent:cancelled', 'agent:response'])
    assert.equal((await ask('message', { text: 'again' })).ok, true)
    await wait('agent:thinking', 2)
    socket.disconnect()
  } finally {
    await app.close()
  }
})

test('more than its window holds is a full window, in words', async () => {
  const { app, token } = await start()
  try {
    const { socket, wait, ask } = await open(app, token)
    await ask('message', { text: 'x '.repeat(WINDOW) })
    const { last } = await wait('agent:error')
    assert.equal(last.code, 'context_overflow')
    socket.disconnect()
  } finally {
    await app.close()
  }
})

test('a request with tools is taken', async () => {
  const { app, token } = await start({ SPL_SANDBOX: 'bubblewrap', SPL_LLM_MAX_TOKENS: '16', SPL_LLM_PROMPT_TEMPLATE: 'Be brief.' })
  try {
    const { socket, heard, wait, ask } = await open(app, token)
    await ask('message', { text: 'hi' })
    const ended = await wait(['agent:response', 'agent:message', 'agent:error'])
    // The definitions of the bundled tools are longer than this window: then the server says so, and nothing else.
    if (ended.name === 'agent:error') assert.equal(ended.last.code, 'context_overflow', JSON.stringify(heard.at(-1)))
    socket.disconnect()
  } finally {
    await app.close()
  }
})
