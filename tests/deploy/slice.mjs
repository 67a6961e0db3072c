/**
 * One slice through a gateway at SEPAL_TEST_BASE or http://localhost:3000/, in two halves with a
 * restart between them. SEPAL_TEST_SANDBOX and SEPAL_TEST_STORAGE are the kinds that it has to have.
 *
 *   node slice.mjs work            signs in, lets one call run, prints the session's id
 *   node slice.mjs look SESSION    finds all of it again, and goes on
 *   node slice.mjs lack            finds that there is no sandbox, and what the page says of it
 */
import assert from 'node:assert/strict'
import { Person, ask, signIn } from './person.mjs'

const BASE = process.env.SEPAL_TEST_BASE ?? 'http://localhost:3000/'
const [half, sessionId] = process.argv.slice(2)

const page = await ask(BASE)
assert.equal(page.status, 200, page.text)
const ready = JSON.parse((await ask(`${BASE}readyz`)).text)
assert.equal(ready.status, 'ready', JSON.stringify(ready))
assert.equal(ready.sandbox, half === 'lack' ? 'unavailable' : 'ok', JSON.stringify(ready))

const { cookie, setCookie, me } = await signIn(BASE, { name: 'ana', password: process.env.SEPAL_TEST_PASSWORD })
assert.match(setCookie, /^sepal=/, 'over http the cookie is a plain one')
assert.equal(me.encrypted, false, 'and the page is told that nothing is encrypted')

const person = new Person(BASE, { cookie, transports: ['websocket'], sessionId })
const { state, sandbox, storage, ...session } = await person.ready()
if (half === 'work') {
  assert.equal(sandbox.kind, process.env.SEPAL_TEST_SANDBOX, JSON.stringify(sandbox))
  assert.equal(storage.kind, process.env.SEPAL_TEST_STORAGE, JSON.stringify(storage))
  await person.ok('message', { text: 'run: echo kept > note; echo user $(id -u), network $(tail -n +3 /proc/net/dev | cut -d: -f1 | xargs)' })
  assert.match(await person.approveFirst(), /user 65534, network lo/)
  await person.wait('agent:response')
  console.log(session.sessionId)
} else if (half === 'lack') {
  const command = /`docker compose build sandbox`/
  assert.match(ready.sandboxRemedy, command)
  assert.equal(sandbox.ok, false, JSON.stringify(sandbox))
  const { sandbox: said } = JSON.parse((await ask(`${BASE}api/system`, { headers: { cookie } })).text)
  assert.match(said.detail, command)
  await person.ok('message', { text: 'hello' })
  await person.wait('agent:response')
} else {
  const events = state.transcript.events
  const said = (name) => events.filter(({ event }) => event === name).map(({ args }) => args[0])
  assert.equal(said('user:message').length, 1)
  assert.match(said('tool:output')[0], /user 65534, network lo/)
  assert.equal(said('agent:response').length, 1)
  await person.ok('message', { text: 'run: cat note' })
  assert.match(await person.approveFirst(), /kept/, 'the workspace outlived the restart')
  await person.wait('agent:response')
}
person.close()
