/** The unit of deploy/systemd as systemd itself reads it; nothing is started. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

/** Ten times the exposure that systemd computes; its own word for less is "OK". */
const MOST_EXPOSED = '50'

/** Each of them keeps bubblewrap from making a sandbox: what it needs is refused inside the service. */
const BREAKS_BUBBLEWRAP = [
  'PrivateDevices',
  'ProtectControlGroups',
  'ProtectHostname',
  'ProtectKernelLogs',
  'ProtectKernelTunables',
  'ProtectProc',
  'RestrictNamespaces',
  'SystemCallFilter',
]

test('systemd finds nothing wrong with the unit, and what it leaves open is little', () => {
  const text = readFileSync(new URL('../../deploy/systemd/sepal.service', import.meta.url), 'utf8')
  const program = '/opt/sepal/bin/sepal'
  assert.ok(text.includes(`ExecStart=${program} serve`), 'the unit starts the program of the archive')
  const set = text.split('\n').map((line) => line.split('=')[0])
  assert.deepEqual(BREAKS_BUBBLEWRAP.filter((name) => set.includes(name)), [])

  const folder = mkdtempSync(join(tmpdir(), 'sepal-unit-'))
  try {
    const file = join(folder, 'sepal.service')
    // systemd looks whether the program is there.
    writeFileSync(file, text.replaceAll(program, process.execPath))
    for (const words of [['verify'], ['security', '--offline=true', `--threshold=${MOST_EXPOSED}`]]) {
      const { status, stdout, stderr, error } = spawnSync('systemd-analyze', ['--no-pager', ...words, file], { encoding: 'utf8' })
      assert.equal(status, 0, `${error ?? ''}${stdout}${stderr}`)
      assert.equal(stderr, '')
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
