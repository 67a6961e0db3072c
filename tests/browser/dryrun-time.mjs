/**
 * How soon a dry run is ready in a workspace of 10,000 small files (docs/sandbox.md):
 *
 *   SEPAL_BINARY=$PWD/target/dist/sepal node tests/browser/dryrun-time.mjs
 */
import { io } from 'socket.io-client'
import { Gateway } from './support/gateway.mjs'
import { ModelStandIn } from './support/model.mjs'
import { deferred } from './support/until.mjs'

const FILES = 10_000
const TRIES = 9
const MAKE = `mkdir $(seq -f d%g 0 99); for n in $(seq ${FILES}); do echo $n > d$((n % 100))/$n; done`

const model = await ModelStandIn.start()
const app = await Gateway.start({ ...model.env, SPL_SANDBOX: 'bubblewrap' })
const token = await app.addPerson('ana')
const socket = io(app.url, { transports: ['websocket'], auth: { token } })

/** The next event of that name that fits. */
function next(name, fits = () => true) {
  const { promise, resolve } = deferred()
  const heard = (...args) => {
    if (!fits(...args)) return
    socket.off(name, heard)
    resolve(args)
  }
  socket.on(name, heard)
  return promise
}

/** The card of a call, once the model has asked for it. */
async function asked(command) {
  model.willCall(['execute_command', { command }]).willSay('done')
  const shown = next('tool:approval_required')
  socket.emit('message', 'go on', () => {})
  const [card] = await shown
  return card
}

try {
  await next('system:ready')
  const { callId, digest } = await asked(MAKE)
  const made = next('tool:output')
  socket.emit('tool:approval', { callId, digest, approved: true }, () => {})
  await made
  const card = await asked('echo changed >d1/1')
  const times = []
  for (let at = 0; at < TRIES; at++) {
    const over = next('tool:queue', (queue) => JSON.stringify(queue).includes('"preparedMs"'))
    socket.emit('tool:dry_run', { callId: card.callId, digest: card.digest }, () => {})
    const [queue] = await over
    times.push(Number(/"preparedMs":(\d+)/.exec(JSON.stringify(queue))[1]))
    const dropped = next('tool:queue', (queue) => !JSON.stringify(queue).includes('"dryRun"'))
    socket.emit('tool:dry_run_drop', { callId: card.callId }, () => {})
    await dropped
  }
  const sorted = times.toSorted((a, b) => a - b)
  console.log(`ready with ${FILES} files after ${times.join(', ')} ms; median ${sorted[TRIES >> 1]} ms`)
} finally {
  socket.close()
  await app.close()
  model.close()
}
