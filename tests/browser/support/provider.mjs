/** An authorisation server that other people wrote, and an MCP server that takes its tokens: `tests/conformance/provider.mjs`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('../../conformance/', import.meta.url))

export class Provider {
  /** Needs `npm --prefix tests/conformance ci`. */
  static async start(settings = {}) {
    const own = `${FOLDER}node_modules/node-linux-${process.arch}/bin/node`
    const provider = new Provider()
    provider.process = spawn(existsSync(own) ? own : process.execPath, ['provider.mjs'], {
      cwd: FOLDER,
      env: { PATH: process.env.PATH, PROVIDER: JSON.stringify(settings) },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const [first] = await Promise.race([
      once(createInterface({ input: provider.process.stdout }), 'line'),
      once(provider.process, 'exit').then(([code]) => {
        throw new Error(`the authorisation server ended with ${code}: is \`npm --prefix tests/conformance ci\` done?`)
      }),
    ])
    return Object.assign(provider, JSON.parse(first))
  }

  /** The settings with which a gateway knows the MCP server as `name`. */
  env(name) {
    return { SPL_MCPS_0_ID: name, SPL_MCPS_0_URL: this.mcp, SPL_SANDBOX: 'none' }
  }

  /** What it has seen: `registrations`, `codes`, `refreshes`, `revocations`, `calls`, `strangers`. */
  async counts() {
    return (await fetch(new URL('/counts', this.mcp))).json()
  }

  /** It ends with its input. */
  close() {
    this.process.stdin.end()
  }
}
