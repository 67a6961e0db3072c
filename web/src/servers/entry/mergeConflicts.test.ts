import { describe, expect, it } from 'vitest'
import type { ServerConfig, ServerPatch } from '@/wire/restTypes'
import { conflictsOf, rebase } from './mergeConflicts'

const BASE: ServerConfig = { command: 'tracker', args: ['--serve'], env: { LANG: '••••', MODE: '••••' }, timeout: 5 }

describe('what somebody else did meanwhile', () => {
  const check = (patch: ServerPatch, theirs: Partial<ServerConfig>, expected: string[]) =>
    expect(
      conflictsOf(BASE, patch, { ...BASE, ...theirs }).map(({ field, name = '', isOurs }) => `${field} ${name} ${isOurs ? 'both' : 'theirs'}`),
    ).toEqual(expected)

  it('clashes where both changed the same, and not to the same', () => {
    check({ timeout: 9 }, {}, [])
    check({ timeout: 9 }, { timeout: 7 }, ['timeout  both'])
    check({ timeout: 7 }, { timeout: 7 }, [])
    check({ timeout: null }, { timeout: undefined }, [])
    check({ args: null }, { args: ['--theirs'] }, ['args  both'])
    check({ args: ['--theirs'] }, { args: ['--theirs'] }, [])
  })

  it('clashes by single names in maps', () => {
    check({ env: { LANG: 'C' } }, { env: { LANG: '••••', MODE: '••••', MORE: '••••' } }, [])
    check({ env: { LANG: 'C' } }, { env: { MODE: '••••' } }, ['env LANG both'])
    check({ env: { LANG: null } }, { env: { MODE: '••••' } }, [])
    check({ env: { MORE: 'mine' } }, { env: { ...BASE.env, MORE: '••••' } }, ['env MORE both'])
    check({ env: null }, { env: { MODE: '••••' } }, [])
  })

  it('is looked at wherever values go, and nowhere else', () => {
    check({}, { timeout: 7, trusted: true }, [])
    check({}, { command: 'another', args: [] }, ['command  theirs', 'args  theirs'])
    check({ command: 'mine' }, { command: 'theirs', cwd: '/workspace' }, ['command  both', 'cwd  theirs'])
  })
})

describe('a change on top of it', () => {
  it('keeps what only they changed', () => {
    const now = { ...BASE, timeout: 9, env: { LANG: '••••', MORE: '••••' } }
    expect(rebase(now, { args: null, command: 'mine', env: { LANG: null, MODE: 'fast' } })).toEqual({
      command: 'mine',
      timeout: 9,
      env: { MORE: '••••', MODE: 'fast' },
    })
    expect(rebase(now, { env: null, headers: { A: '1' } })).toEqual({ ...BASE, timeout: 9, env: undefined, headers: { A: '1' } })
    expect(rebase(now, {})).toEqual(now)
  })
})
