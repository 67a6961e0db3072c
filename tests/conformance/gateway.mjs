// A gateway whose agent MCP clients may ask, for as long as the work with it lasts.

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createListener } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const START_MS = 60_000

export async function listening(server) {
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  return server.address().port
}

async function freePort() {
  const taken = createListener()
  const port = await listening(taken)
  await new Promise((done) => taken.close(done))
  return port
}

/** The gateway, once it says where MCP clients find it. */
async function start(sepal, port, data, env) {
  const gateway = spawn(sepal, ['--port', String(port), ...data, 'agent', '--daemon'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = []
  const ready = new Promise((done, fail) => {
    for (const stream of [gateway.stdout, gateway.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        said.push(line)
        if (line.includes('MCP clients:')) done()
      })
    }
    gateway.on('exit', (code) => fail(new Error(`the gateway ended with ${code}\n${said.join('\n')}`)))
    setTimeout(() => fail(new Error(`the gateway does not start\n${said.join('\n')}`)), START_MS).unref()
  })
  await ready.catch((error) => {
    gateway.kill()
    throw error
  })
  return gateway
}

/** Starts the program with these settings, and gives `work` its port, the key of a member, and a folder that goes afterwards. */
export async function withGateway(sepal, settings, work) {
  const folder = mkdtempSync(join(tmpdir(), 'sepal-conformance-'))
  const data = ['--data-dir', join(folder, 'data')]
  const env = { PATH: process.env.PATH, SPL_SANDBOX: 'none', ...settings }
  const admin = (...words) => execFileSync(sepal, [...data, 'admin', ...words], { env, encoding: 'utf8' })
  const port = await freePort()
  const gateway = await start(sepal, port, data, env)
  try {
    admin('user', 'add', 'ana', '--role', 'member')
    const [key] = /spl_\S+/.exec(admin('key', 'add', '--user', 'ana', 'suite'))
    return await work({ port, key, folder })
  } finally {
    gateway.removeAllListeners('exit')
    gateway.kill()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
