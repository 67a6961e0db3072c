/** A program that is written against the generated client alone does what a person does in the page. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { RequestError, Sepal } from '../../clients/typescript/dist/index.js'
import { SessionSocket } from '../../clients/typescript/dist/socket.js'
import { Gateway } from './support/gateway.mjs'
import { ModelStandIn } from './support/model.mjs'

const model = await ModelStandIn.start()
after(() => model.close())
const env = { ...model.env, SPL_SANDBOX: 'bubblewrap' }
const PERSON = { name: 'ana', password: 'a long enough password' }

/** A gateway, told of by its log where something fails. */
function told(name, tell, more = {}) {
  test(name, async () => {
    const app = await Gateway.start({ ...env, ...more })
    model.replies.length = 0
    try {
      await tell(app)
    } catch (error) {
      error.message += `\n--- the gateway's log:\n${app.log.split('\n').slice(-20).join('\n')}`
      throw error
    } finally {
      for (const reader of readers) reader.leaving.abort()
      await app.close()
    }
  })
}

const readers = new Set()

/** The events of a session, read one after the other. */
class Reader {
  constructor(session, options = {}) {
    readers.add(this)
    this.leaving = new AbortController()
    this.events = session.events({ ...options, signal: this.leaving.signal })
    this.seen = []
  }

  async next(name, fits = () => true) {
    for (;;) {
      const { value, done } = await this.events.next()
      assert.equal(done, false, `the stream ended before ${name}`)
      this.seen.push(value)
      if (value.name === name && fits(...value.args)) return value.args
    }
  }

  card() {
    return this.next('tool:approval_required').then(([card]) => card)
  }

  answer() {
    return this.next('agent:response').then(([text]) => text)
  }

  leave() {
    this.leaving.abort()
    return this.events.return()
  }
}

const wrote = (path, content) => ['write_file', { path, content }]

told('a program does a whole story by the client alone', async (app) => {
  const key = await app.addPerson('ana')
  const sepal = new Sepal({ url: app.url, key })
  const session = await sepal.createSession({ title: 'By a program' })
  const reader = new Reader(session)
  await reader.next('system:ready')

  // Approve.
  model.willCall(wrote('plan.md', 'first\n')).willSay('Wrote first')
  await session.send('write the plan')
  await session.approve(await reader.card())
  assert.equal(await reader.answer(), 'Wrote first')
  assert.equal((await session.readFile('plan.md')).text, 'first\n')

  // Edit.
  model.willCall(wrote('plan.md', 'second\n')).willSay('Wrote second')
  await session.send('write it again')
  await session.approve(await reader.card(), { args: { path: 'plan.md', content: 'edited\n' } })
  assert.equal(await reader.answer(), 'Wrote second')
  const read = await session.readFile('plan.md')
  assert.equal(read.text, 'edited\n')

  // Reject.
  model.willCall(['execute_command', { command: 'rm plan.md' }]).willSay('Then not')
  await session.send('remove it')
  await session.reject(await reader.card(), 'It is still needed')
  assert.equal(await reader.answer(), 'Then not')

  // Dry run.
  model.willCall(['execute_command', { command: 'echo tried >tried.txt' }]).willSay('Ran')
  await session.send('try')
  const card = await reader.card()
  await session.dryRun(card)
  const [queue] = await reader.next('tool:queue', ({ calls }) => calls.some(({ dryRun }) => dryRun?.status === 'completed'))
  assert.deepEqual(queue.calls[0].dryRun.counts, { created: 1, modified: 0, deleted: 0, folders: 0 })
  assert.ok(!(await session.files()).items.some(({ name }) => name === 'tried.txt'), 'nothing ran')
  await session.approve(card)
  assert.equal(await reader.answer(), 'Ran')

  // Undo of what the command made.
  const { items } = await session.changes()
  await session.undo(items.find(({ calls }) => calls.includes(card.callId)).number)
  assert.ok(!(await session.files()).items.some(({ name }) => name === 'tried.txt'), 'undone')

  // Files: a change of an older version is refused.
  await session.writeFile('plan.md', 'mine\n', { ifMatch: read.etag })
  await assert.rejects(session.writeFile('plan.md', 'late\n', { ifMatch: read.etag }), (error) => error instanceof RequestError && [409, 412].includes(error.status))

  // Stop, and ask again.
  model.willStream(['one ', 'two '], { paceMs: 8_000 })
  await session.send('count')
  await reader.next('agent:delta')
  await session.stop()
  await reader.next('agent:cancelled')
  model.willSay('one two three')
  await session.send('once more')
  assert.equal(await reader.answer(), 'one two three')
  model.willSay('four')
  await session.retry()
  assert.equal(await reader.answer(), 'four')

  // A fork, with a copy of the files.
  model.willSay('In the fork')
  const fork = await session.fork({ text: 'go on there' })
  const there = new Reader(fork)
  const [ready] = await there.next('system:ready')
  const isSaid = ready.state.transcript.events.some(({ event, args }) => event === 'agent:response' && args[0] === 'In the fork')
  if (!isSaid) assert.equal(await there.answer(), 'In the fork')
  assert.equal((await fork.readFile('plan.md')).text, 'mine\n')
  await there.leave()

  // What was shown is dense, and the other door shows the same.
  const shown = reader.seen.filter(({ id }) => id !== null).map(({ id }) => Number(id.split('.')[0]))
  assert.deepEqual(shown, Array.from(shown, (_, at) => shown[0] + at))
  await reader.leave()
  const socket = new SessionSocket({ url: app.url, key, sessionId: session.id })
  const [atSocket] = await socket.once('system:ready')
  assert.equal(atSocket.seq, shown.at(-1))
  const acknowledged = await socket.command('session:window', { whole: true })
  assert.equal(acknowledged.ok, true)
  socket.close()

  // Settings: of two writers who read the same, one is refused.
  const budget = { level: 'own', subject: session.id, period: 'whole', limitUsd: 5 }
  const { etag } = await sepal.read('get', '/api/budgets')
  await sepal.request('put', '/api/budgets', { body: budget, ifMatch: etag })
  await assert.rejects(sepal.request('put', '/api/budgets', { body: budget, ifMatch: etag }), (error) => error.status === 412)

  const all = []
  for await (const item of sepal.pages((cursor) => sepal.request('get', '/api/sessions', { query: { limit: 1, ...(cursor && { cursor }) } }))) all.push(item.id)
  assert.deepEqual(new Set(all), new Set([session.id, fork.id]))
  await fork.delete()
})

told('a person signs in by the client, and a stream goes on after the gateway was killed', async (app) => {
  const secret = (await app.setupLink()).split('#')[1]
  await new Sepal({ url: app.url }).request('post', '/api/auth/setup', { body: { secret, ...PERSON } })
  const sepal = new Sepal({ url: app.url })
  await assert.rejects(sepal.signIn(PERSON.name, 'not the password'), (error) => error.status === 401)
  const me = await sepal.signIn(PERSON.name, PERSON.password)
  assert.equal(me.user.name, 'ana')
  const session = await sepal.createSession()
  const reader = new Reader(session)
  await reader.next('system:ready')
  model.willSay('before')
  await session.send('one')
  assert.equal(await reader.answer(), 'before')
  await app.kill()
  await app.launch()
  model.willSay('behind')
  await session.send('two')
  assert.equal(await reader.answer(), 'behind')
  const shown = reader.seen.filter(({ id, name }) => id !== null && name !== 'system:ready').map(({ id }) => Number(id.split('.')[0]))
  assert.deepEqual(shown, Array.from(shown, (_, at) => at + 1), 'no gap and no double')
  await reader.leave()

  const key = crypto.randomUUID()
  const twice = await Promise.allSettled([1, 2].map(() => sepal.createSession({ title: 'Once' }, key)))
  const made = new Set(twice.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : [])))
  assert.equal(made.size, 1)
})
