// server.mjs SEPAL: the official conformance suite asks our `/mcp`, at each revision that it has requirements
// for. The suite knows no keys, so a proxy in front says one. Most of what is not passed asks for tools, prompts
// and resources of the suite's own server; expected-failures.yaml names each with its reason, and what passes
// by now is an error too.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listening, withGateway } from './gateway.mjs'

const REVISIONS = ['2025-11-25', '2026-07-28']
const here = dirname(fileURLToPath(import.meta.url))
// The model is never asked: no scenario that fits calls the tool.
const settings = { SPL_LLM_PROVIDER: 'openai', SPL_LLM_API_KEY: 'dummy-api-key' }

/** Says the key, and passes everything on as it is. */
function saying(key, port) {
  return createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: `Bearer ${key}` }
    const onwards = request({ host: '127.0.0.1', port, path: asked.url, method: asked.method, headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers)
      got.pipe(answer)
    })
    onwards.on('error', () => answer.destroy())
    answer.on('close', () => onwards.destroy())
    asked.pipe(onwards)
  })
}

function suite(url, revision, results) {
  const words = ['server', '--url', url, '--requirements', revision, '--expected-failures', 'expected-failures.yaml', '--output-dir', results]
  const run = spawn(process.execPath, ['node_modules/@modelcontextprotocol/conformance/dist/index.js', ...words], { cwd: here, stdio: 'inherit' })
  return new Promise((done) => run.on('exit', done))
}

/** What a scenario found that it could look at: not what needs tools of the suite's own server. */
function found(results, scenario) {
  const run = readdirSync(results).find((name) => name.startsWith(`server-${scenario}-20`))
  const checks = JSON.parse(readFileSync(join(results, run, 'checks.json'), 'utf8'))
  return checks.filter(({ errorMessage }) => !errorMessage?.startsWith('Not testable'))
}

await withGateway(resolve(process.argv[2]), settings, async ({ port, key, folder }) => {
  const proxy = saying(key, port)
  const url = `http://127.0.0.1:${await listening(proxy)}/mcp`
  for (const revision of REVISIONS) {
    const results = join(folder, revision)
    assert.equal(await suite(url, revision, results), 0, `the suite of ${revision} found what is not expected`)
    if (revision !== '2026-07-28') continue
    // One scenario for all of a server without sessions: it counts as failed for what it cannot look at.
    const checks = found(results, 'server-stateless')
    const failed = checks.filter(({ status }) => status === 'FAILURE')
    assert.deepEqual(failed.map(({ id }) => id), [])
    assert.ok(checks.filter(({ status }) => status === 'SUCCESS').length >= 20, 'the scenario looks at less than before')
  }
  proxy.close()
  proxy.closeAllConnections()
})
