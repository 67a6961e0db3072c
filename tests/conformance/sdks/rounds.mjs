// rounds.mjs SEPAL ENVIRONMENTS: the official SDKs of npm and PyPI, at their oldest and newest versions that speak each
// revision, go a round with the agent's `/mcp`: they connect, list its tool, call it, and leave. None may complain.
// ENVIRONMENTS is the folder for Python's environments, which are made once.

import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withGateway } from '../gateway.mjs'

/** How long one round may take. */
const ROUND_MS = 60_000
const here = dirname(fileURLToPath(import.meta.url))
const [sepal, environments] = process.argv.slice(2).map((path) => resolve(path))

/** The packages of package.json, and the revision that each speaks at most. */
const JAVASCRIPT = {
  'sdk-1.0': '2024-11-05',
  'sdk-1.10': '2024-11-05',
  'sdk-1.11': '2025-03-26',
  'sdk-1.12': '2025-03-26',
  'sdk-1.13': '2025-06-18',
  'sdk-1.24.0': '2025-06-18',
  'sdk-1.24.3': '2025-11-25',
  'sdk-1.32': '2025-11-25',
  'client-2.0': '2026-07-28',
  'client-2.4': '2026-07-28',
}

/** The versions of `mcp`. The first ones need a pydantic of their time. */
const PYTHON = {
  '1.8.0': ['2024-11-05', 'pydantic==2.10.6'],
  '1.9.0': ['2025-03-26', 'pydantic==2.10.6'],
  '1.9.4': ['2025-03-26', 'pydantic==2.10.6'],
  '1.10.0': ['2025-06-18', 'pydantic==2.10.6'],
  '1.23.0': ['2025-06-18'],
  '1.24.0': ['2025-11-25'],
  '1.30.0': ['2025-11-25'],
  '2.0.0': ['2025-11-25'],
  '2.3.0': ['2025-11-25'],
}

/** The interpreter of an environment that has this version. */
function python(version, more) {
  const folder = join(environments, `mcp-${version}`)
  const stamp = join(folder, 'bin', 'installed')
  if (!existsSync(stamp)) {
    rmSync(folder, { recursive: true, force: true })
    execFileSync('python3', ['-m', 'venv', folder])
    execFileSync(join(folder, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', `mcp==${version}`, ...more])
    execFileSync('touch', [stamp])
  }
  return join(folder, 'bin', 'python')
}

const failed = []

async function round(name, revision, program, words) {
  try {
    const { stdout } = await promisify(execFile)(program, words, { cwd: here, timeout: ROUND_MS })
    const { tools, text, ...said } = JSON.parse(stdout.trim().split('\n').at(-1))
    assert.deepEqual(said, { revision, isError: false, problems: [] })
    assert.equal(tools.length, 1)
    assert.notEqual(text, '')
    console.log(`${name}: ${revision}`)
  } catch (error) {
    failed.push(name)
    console.error(`${name}: ${error.stderr || error.message}`)
  }
}

// Environments first: nobody waits for a package while the gateway runs.
const interpreters = Object.entries(PYTHON).map(([version, [revision, ...more]]) => [`PyPI mcp ${version}`, revision, python(version, more)])
await withGateway(sepal, { SPL_LLM_PROVIDER: 'scripted' }, async ({ port, key }) => {
  const url = `http://127.0.0.1:${port}/mcp`
  for (const [name, revision] of Object.entries(JAVASCRIPT)) await round(`npm ${name}`, revision, process.execPath, ['round.mjs', name, url, key])
  for (const [name, revision, interpreter] of interpreters) await round(name, revision, interpreter, ['round.py', url, key])
})
assert.deepEqual(failed, [])
