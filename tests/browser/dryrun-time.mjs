/**
 * How soon a dry run is ready in a workspace of 10,000 small files (docs/sandbox.md):
 *
 *   SEPAL_BINARY=$PWD/target/dist/sepal npm --prefix tests/browser run measure-dryrun
 */
import assert from 'node:assert/strict'
import { io } from 'socket.io-client'
import { Gateway } from './support/gateway.mjs'
import { ModelStandIn } from './support/model.mjs'
import { until } from './support/until.mjs'

const FILES = 10_000
const TRIES = 9
const MAKE = `mkdir $(seq -f d%g 0 99); for n in $(seq ${FILES}); do echo $n > d$((n % 100))/$n; done`

const model = await ModelStandIn.start()
const app = await Gateway.start({ ...model.env, SPL_SANDBOX: 'bubblewrap' })
const socket = io(app.url, { transports: ['websocket'], auth: { token: await app.addPerson('ana') } })
let isReady = false
let cards = []
socket.on('system:ready', () => (isReady = true))
socket.on('tool:queue', ({ calls }) => (cards = calls))

async function tell(name, payload) {
  const answer = await socket.timeout(10_000).emitWithAck(name, payload)
  assert.equal(answer.ok, true, JSON.stringify(answer))
}

/** The card of a command, as it is now. */
const card = (command) => cards.find((card) => card.args.command === command)

/** Lets the model ask for the command; its card. */
async function asked(command) {
  model.willCall(['execute_command', { command }]).willSay('done')
  await tell('message', { text: 'go on' })
  return until('the call waits', () => card(command))
}

try {
  await until('the session is ready', () => isReady)
  const { callId, digest } = await asked(MAKE)
  await tell('tool:approval', { callId, digest, approved: true })
  await until('the files are made', () => !card(MAKE) || card(MAKE).status === 'completed', 60_000)
  const command = 'echo changed >d1/1'
  const call = await asked(command)
  const times = []
  for (let at = 0; at < TRIES; at++) {
    await tell('tool:dry_run', { callId: call.callId, digest: call.digest })
    const tried = await until('the dry run is over', () => card(command).dryRun?.status === 'completed' && card(command).dryRun)
    times.push(tried.preparedMs)
    await tell('tool:dry_run_drop', { callId: call.callId })
    await until('its result is gone', () => !card(command).dryRun)
  }
  const sorted = times.toSorted((a, b) => a - b)
  console.log(`ready with ${FILES} files after ${times.join(', ')} ms; median ${sorted[TRIES >> 1]} ms`)
} finally {
  socket.close()
  await app.close()
  model.close()
}
