/**
 * One slice through a gateway at SEPAL_TEST_BASE or http://localhost:3000/, in two halves with a
 * restart between them.
 *
 *   node slice.mjs work            signs in, lets one call run, prints the session's id
 *   node slice.mjs look SESSION    finds all of it again, and goes on
 */
import assert from 'node:assert/strict'
import { Person, ask, signIn } from './person.mjs'

const BASE = process.env.SEPAL_TEST_BASE ?? 'http://localhost:3000/'
const [half, sessionId] = process.argv.slice(2)

const page = await ask(BASE)
assert.equal(page.status, 200, page.text)
const ready = JSON.parse((await ask(`${BASE}readyz`)).text)
assert.equal(ready.sandbox, 'ok', JSON.stringify(ready))

const { cookie, setCookie, me } = await signIn(BASE, { name: 'ana', password: process.env.SEPAL_TEST_PASSWORD })
assert.match(setCookie, /^sepal=/, 'over http the cookie is a plain one')
assert.equal(me.encrypted, false, 'and the page is told that nothing is encrypted')

const person = new Person(BASE, { cookie, transports: ['websocket'], sessionId })
const { state, sandbox, storage, ...session } = await person.ready()
if (half === 'work') {
  assert.equal(sandbox.kind, 'docker', JSON.stringify(sandbox))
  assert.equal(storage.kind, 'redis', JSON.stringify(storage))
  await person.ok('message', { text: 'run: echo kept > note; echo user $(id -u), network $(ls /sys/class/net | xargs)' })
  assert.match(await person.approveFirst(), /user 65534, network lo/)
  await person.wait('agent:response')
  console.log(session.sessionId)
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
