/** The wire as other people's programs use it: the official client in all its transports, and the plainest of all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { io } from 'socket.io-client'
import { Gateway } from './support/gateway.mjs'
import { until } from './support/until.mjs'

const TRANSPORTS = [['websocket'], ['polling'], ['polling', 'websocket']]

/** A client that keeps everything it hears. */
class Client {
  constructor(app, { token, sessionId, lastSeq, journalId, transports = ['websocket'], ...options }) {
    this.heard = []
    this.socket = io(app.url, {
      auth: { ...(token && { token }), ...(sessionId && { sessionId }), ...(journalId && { lastSeq, journalId }) },
      transports,
      reconnection: false,
      forceNew: true,
      ...options,
    })
    this.socket.onAny((name, ...args) => this.heard.push({ name, args, last: args.at(-1) ?? {} }))
    this.socket.on('connect_error', (error) => (this.refusal = error.message))
    this.socket.on('disconnect', () => (this.isGone = true))
  }

  all(name) {
    return this.heard.filter((event) => event.name === name)
  }

  /** The nth event of this name. */
  wait(name, nth = 1, within = 30_000) {
    return until(`${name} number ${nth}`, () => this.all(name)[nth - 1], within)
  }

  async ready() {
    return (await this.wait('system:ready')).args[0]
  }

  ask(name, payload) {
    return this.socket.timeout(10_000).emitWithAck(name, payload)
  }

  async ok(name, payload) {
    const ack = await this.ask(name, payload)
    assert.equal(ack.ok, true, JSON.stringify(ack))
    return ack
  }

  /** The gap-free stream: every event with a `seq` of its own. */
  seqs() {
    const numbered = this.heard.filter(({ name, last }) => typeof last.seq === 'number' && !STATE.has(name) && !last.callId?.error)
    return numbered.filter(({ name, last }) => name !== 'agent:error' || last.callId === undefined).map(({ last }) => last.seq)
  }

  close() {
    this.socket.disconnect()
  }
}

const STATE = new Set(['tool:queue', 'session:usage', 'system:ready', 'approvals:waiting'])

function dense(seqs) {
  return seqs.every((seq, at) => at === 0 || seq === seqs[at - 1] + 1)
}

/** A gateway and clients that are closed whatever happens. */
function told(name, tell, env = {}) {
  test(name, async () => {
    const app = await Gateway.start({ SPL_LLM_SCRIPTED_PACE_MS: '3', ...env })
    const clients = []
    try {
      const token = await app.addPerson('ana')
      const connect = (options = {}) => {
        const client = new Client(app, { token, ...options })
        clients.push(client)
        return client
      }
      await tell({ app, connect, token })
    } catch (error) {
      error.message += `\n--- the gateway's log:\n${app.log.split('\n').slice(-20).join('\n')}`
      throw error
    } finally {
      for (const client of clients) client.close()
      await app.close()
    }
  })
}

for (const transports of TRANSPORTS) {
  told(`a whole turn, a stop and a resume over ${transports.join(', then ')}`, async ({ connect }) => {
    const client = connect({ transports })
    const { sessionId, journalId } = await client.ready()
    if (transports.length === 2) {
      await until('the upgrade', () => client.socket.io.engine.transport.name === 'websocket')
    }
    assert.ok((await client.ok('message', { text: 'make two files and show them' })).seq > 0)
    for (const nth of [1, 2, 3, 4]) {
      const { last } = await client.wait('tool:approval_required', nth)
      assert.equal(last.queuePosition, nth % 2 === 1 ? 1 : 2)
      assert.equal(last.totalInQueue, 2)
      await client.ok('tool:approval', { callId: last.callId, approved: true })
    }
    assert.match((await client.wait('agent:response')).args[0], /The second note/)
    const left = client.seqs().at(-1)
    client.close()

    // While it is away another client goes on; nothing is missed and nothing comes twice.
    const other = connect({ transports, sessionId })
    await other.ready()
    await other.ok('message', { text: 'run: sleep 25' })
    const { last: card } = await other.wait('tool:approval_required')
    await other.ok('tool:approval', { callId: card.callId, approved: true })
    await other.wait('tool:started')
    await other.ok('agent:cancel', {})
    await other.wait('agent:cancelled')

    const again = connect({ transports, sessionId, lastSeq: left, journalId })
    const ready = await again.ready()
    assert.equal(ready.resumed, true)
    await again.wait('agent:cancelled')
    const seqs = again.seqs()
    assert.equal(seqs[0], left + 1)
    assert.ok(dense(seqs), `a gap or a duplicate: ${seqs}`)
    assert.deepEqual(seqs.at(-1), other.seqs().at(-1))
    assert.ok((await again.ok('session:resume', { lastSeq: left, journalId })).ok)
  })
}

told('fifty commands keep their order', async ({ connect }) => {
  for (const transports of TRANSPORTS) {
    const client = connect({ transports })
    await client.ready()
    await client.ok('message', { text: 'calls: 50' })
    await client.wait('tool:approval_required')
    // In an order of our own, so that the server's cannot be mistaken for it.
    // The queue is told beside the cards, before them or after.
    const queued = () => client.all('tool:queue').at(-1)?.last.calls ?? []
    await until('all calls are in the queue', () => queued().length === 50)
    const callIds = queued().map(({ callId }) => callId)
    const mixed = callIds.map((_, at) => callIds[(at * 7) % 50])
    const acks = await Promise.all(mixed.map((callId) => client.ask('tool:approval', { callId, approved: false, reason: 'no' })))
    assert.deepEqual(acks.filter(({ ok }) => !ok), [])
    await client.wait('tool:decided', 50)
    assert.deepEqual(client.all('tool:decided').map(({ last }) => last.callId), mixed)
    await client.wait('agent:response')
  }
})

told('messages keep their order, and a repeated one is the same', async ({ connect }) => {
  const client = connect()
  await client.ready()
  await client.ok('message', { text: 'stream: 300' })
  const texts = Array.from({ length: 15 }, (_, at) => `stream: ${at + 1}`)
  const acks = await Promise.all(texts.map((text, at) => client.ask('message', { text, clientMessageId: `m${at}` })))
  assert.deepEqual(acks.filter(({ ok }) => !ok), [])
  await client.wait('user:message', 16)
  assert.deepEqual(client.all('user:message').slice(1).map(({ args }) => args[0]), texts)
  const repeated = await client.ok('message', { text: 'stream: 1', clientMessageId: 'm0' })
  assert.equal(repeated.seq, acks[0].seq)
}, { SPL_LIMIT_COMMANDS_PER_SOCKET: '0', SPL_LLM_SCRIPTED_PACE_MS: '15' })

told('more than five unanswered commands are refused, and none of the five is lost', async ({ connect }) => {
  const client = connect()
  await client.ready()
  const acks = await Promise.all(Array.from({ length: 50 }, (_, at) => client.ask('message', { text: `stream: ${at + 1}` })))
  assert.equal(acks.length, 50, 'each is answered')
  const refused = acks.filter(({ ok }) => !ok)
  assert.ok(refused.every(({ error }) => error.code === 'too_many_requests' && error.retryable), JSON.stringify(refused[0]))
  const taken = acks.filter(({ ok }) => ok).map(({ seq }) => seq)
  assert.ok(taken.length >= 5)
  assert.deepEqual(taken, [...taken].sort((a, b) => a - b))
})

told('commands that come before system:ready are answered', async ({ connect }) => {
  for (const transports of TRANSPORTS) {
    const client = connect({ transports })
    const acks = await Promise.all([client.ask('message', { text: 'stream: 2' }), client.ask('message', { text: 'stream: 3' })])
    assert.ok(acks.every(({ ok }) => ok), JSON.stringify(acks))
    assert.ok(acks[0].seq < acks[1].seq)
    await client.wait('agent:response')
  }
})

for (const transports of TRANSPORTS.slice(0, 2)) {
  told(`the plainest client of all, over ${transports[0]}`, async ({ connect }) => {
    const client = connect({ transports, sessionId: 'my-notes' })
    client.socket.emit('message', 'run: echo plain')
    client.socket.on('tool:approval_required', ({ callId }) => client.socket.emit('tool:approval', { callId, approved: true }))
    assert.match((await client.wait('tool:output')).args[0], /plain/)
    const [said] = (await client.wait('agent:response')).args
    assert.equal(typeof said, 'string')
    assert.match(said, /plain/)
    client.close()

    const again = connect({ transports, sessionId: 'my-notes' })
    const { state } = await again.ready()
    assert.equal(state.transcript.events.filter(({ event }) => event === 'user:message').length, 1, 'the name leads to the same session')
    again.socket.emit('message', 'stream: 2')
    assert.equal((await again.wait('agent:response')).args[0], 'word1 word2')
  })
}

told('a wrong key is refused with its code', async ({ connect }) => {
  for (const transports of TRANSPORTS) {
    const client = connect({ transports, token: 'spl_wrong' })
    assert.match(await until('a refusal', () => client.refusal), /^unauthorized:/)
    assert.equal(client.heard.length, 0)
  }
})

told("another person's session is not there", async ({ app, connect }) => {
  const mine = connect()
  const { sessionId } = await mine.ready()
  await mine.ok('message', { text: 'stream: 1' })
  const other = await app.addPerson('bo', 'other')
  const theirs = connect({ token: other, sessionId })
  const answer = await until('a refusal', () => theirs.refusal ?? theirs.all('error')[0]?.last.code)
  assert.match(answer, /session_not_found/)
})

told('a pending long poll does not delay SIGTERM', async ({ app, connect }) => {
  const clients = [connect({ transports: ['polling'] }), connect({ transports: ['polling'] }), connect()]
  for (const client of clients) await client.ready()
  const took = await app.terminate()
  assert.ok(took < 2_500, `it took ${Math.round(took)} ms`)
  for (const client of clients) await until('the client is told', () => client.isGone)
})

told('a burst reaches a slow polling client whole', async ({ app, token }) => {
  // Spoken by hand, because the official client cannot be made slow.
  const base = `${app.url}/socket.io/?EIO=4&transport=polling`
  const open = await (await fetch(base)).text()
  const { sid } = JSON.parse(open.slice(1))
  const post = (body) => fetch(`${base}&sid=${sid}`, { method: 'POST', body, headers: { 'Content-Type': 'text/plain;charset=UTF-8' } })
  await post(`40${JSON.stringify({ token })}`)
  let text = ''
  let answer
  const take = async () => {
    for (const packet of (await (await fetch(`${base}&sid=${sid}`)).text()).split('\x1e')) {
      if (packet === '2') await post('3')
      if (!packet.startsWith('42')) continue
      const [name, said, detail] = JSON.parse(packet.slice(2))
      if (name === 'system:ready') isReady = true
      if (name === 'agent:delta') text = text.slice(0, detail.offset) + said
      if (name === 'agent:response') answer = said
    }
  }
  let isReady = false
  await until('ready', async () => {
    await take()
    return isReady
  })
  await post(`42${JSON.stringify(['message', 'stream: 600'])}`)
  const whole = Array.from({ length: 600 }, (_, at) => `word${at + 1}`).join(' ')
  await until('the answer', async () => {
    await take()
    // Slow: while it is away, much comes together.
    await new Promise((resolve) => setTimeout(resolve, 300))
    return answer
  }, 30_000)
  assert.equal(answer, whole)
  assert.ok(whole.startsWith(text), 'what was streamed has no hole')
}, { SPL_LLM_SCRIPTED_PACE_MS: '1' })
