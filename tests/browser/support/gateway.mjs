/** The real program in a process of its own, with data of its own. */
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { deferred, until } from './until.mjs'

const BINARY = process.env.SEPAL_BINARY ?? fileURLToPath(new URL('../../../target/debug/sepal', import.meta.url))
/** A debug build on a busy machine, with the probe of the sandbox. */
const START_MS = 30_000

const running = new Set()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

/** Nothing of the developer's own environment decides what a test sees. */
function environment(data, more) {
  return { PATH: process.env.PATH, HOME: dirname(data), SPL_DATA_DIR: data, SPL_LOG_LEVEL: 'warn', SPL_LLM_LOCAL_SERVERS: 'none', ...more }
}

export class Gateway {
  constructor(folder, env) {
    this.folder = folder
    this.data = join(folder, 'data')
    this.env = env
    this.port = 0
    this.log = ''
  }

  /** On a free port; `env` holds settings. */
  static async start(env = {}) {
    const gateway = new Gateway(mkdtempSync(join(tmpdir(), 'sepal-browser-')), env)
    await gateway.launch()
    return gateway
  }

  get url() {
    return `http://localhost:${this.port}`
  }

  /** What the program and its command line are started with. */
  get binary() {
    return BINARY
  }

  environment(more) {
    return environment(this.data, { ...more, ...this.env })
  }

  /** Starts it, or starts it again on the same data and port. */
  async launch(port = this.port) {
    this.port = port
    const env = this.environment({ SPL_HTTP_PORT: String(port) })
    const child = spawn(BINARY, [], { env, cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] })
    running.add(child)
    this.child = child
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        running.delete(child)
        resolve({ code, signal })
      })
    })
    child.stderr.on('data', (text) => (this.log += text))
    const said = deferred()
    createInterface({ input: child.stdout }).on('line', (line) => {
      const isListening = /listens on /.test(line)
      const port = /listens on http:\/\/[^:]+:(\d+)/.exec(line)?.[1]
      if (port) this.port = Number(port)
      const link = /^\s*(http:\/\/\S+\/(?:welcome|sign-in)#\S+)/.exec(line)?.[1]
      if (link) this.link = link
      if (isListening) said.resolve()
    })
    child.once('error', said.reject)
    void this.exited.then((how) => said.reject(new Error(`the gateway ended: ${JSON.stringify(how)}\n${this.log}`)))
    await Promise.race([said.promise, timeout(START_MS, 'the gateway did not say where it listens')])
    await until('the gateway is ready', async () => (await fetch(`${this.url}/readyz`)).ok, START_MS)
  }

  /** The link for setting up, which only a new installation prints. */
  setupLink() {
    return until('the gateway prints its setup link', () => this.link)
  }

  /** The command line beside the server; gives what it printed. */
  async cli(...args) {
    const { stdout } = await promisify(execFile)(BINARY, args, { env: this.environment(), cwd: this.folder })
    return stdout.trim()
  }

  /** A person of a new team with a key, made without a browser. */
  async addPerson(name, tenant = 'acme') {
    await this.cli('admin', 'tenant', 'add', tenant).catch(() => {})
    await this.cli('admin', 'user', 'add', name, '--tenant', tenant)
    const printed = await this.cli('admin', 'key', 'add', 'test', '--user', name, '--tenant', tenant)
    return printed.split('\n').at(-1).trim()
  }

  /** `kill -9`: no farewell of any kind. */
  async kill() {
    this.child.kill('SIGKILL')
    await this.exited
  }

  /** SIGTERM; gives how long it took in milliseconds. */
  async terminate() {
    const began = performance.now()
    this.child.kill('SIGTERM')
    await this.exited
    return performance.now() - began
  }

  async close() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill()
    // What ran in a sandbox may still be ending.
    await until('the data can be removed', () => {
      rmSync(this.folder, { recursive: true, force: true })
      return true
    })
  }
}

async function timeout(ms, what) {
  await pause(ms, undefined, { ref: false })
  throw new Error(what)
}
