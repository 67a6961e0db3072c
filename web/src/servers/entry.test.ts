import { describe, expect, it } from 'vitest'
import type { ServerConfig, ServerPatch } from '@/wire/restTypes'
import { changedByOthers, conflictsOf, fromPairs, fromWords, givenAgain, lines, looseLines, pairs, patchOf, placed, rebase, strayMasks, toWords, withTransport } from './entry'

const STORED: ServerConfig = {
  enabled: true,
  timeout: 5,
  command: 'tracker',
  args: ['--serve', 'a\nb'],
  env: { LANG: '••••', TOKEN: '${secret:TOKEN}' },
  workspace: 'none',
  trusted: false,
}

it('removes the hosts of a secret by name', () => {
  const base = { command: 'x', secretHosts: { A: ['a.example'], B: ['b.example'] } }
  expect(patchOf(base, { command: 'x', secretHosts: { A: ['a.example', 'c.example'] } })).toEqual({
    secretHosts: { A: ['a.example', 'c.example'], B: null },
  })
  expect(patchOf(base, { command: 'x' })).toEqual({ secretHosts: { A: null, B: null } })
  expect(patchOf(base, { ...base })).toEqual({})
})

describe('a change', () => {
  const check = (change: Partial<ServerConfig>, expected: object) => expect(patchOf(STORED, { ...STORED, ...change })).toEqual(expected)

  it('holds nothing that stayed, masks least of all', () => {
    check({}, {})
    check({ env: { TOKEN: '${secret:TOKEN}', LANG: '••••' }, args: [...(STORED.args ?? [])] }, {})
    check({ headers: {}, containerEnv: {} }, {})
  })

  it('holds single names of maps, and lists as a whole', () => {
    check({ env: { ...STORED.env, LANG: 'C', NEW: '' } }, { env: { LANG: 'C', NEW: '' } })
    check({ args: ['--serve'] }, { args: ['--serve'] })
    check({ headers: { A: '1' } }, { headers: { A: '1' } })
    check({ workspace: 'ro', trusted: true, command: '' }, { workspace: 'ro', trusted: true, command: '' })
  })

  it('removes with null', () => {
    check({ env: { LANG: '••••' } }, { env: { TOKEN: null } })
    check({ env: {} }, { env: { LANG: null, TOKEN: null } })
    check({ args: [] }, { args: null })
    check({ timeout: undefined }, { timeout: null })
  })

  it('is told apart from what somebody else changed meanwhile', () => {
    const patch = { args: null, env: { LANG: 'C' } }
    const check = (now: ServerConfig, expected: string[]) => expect(changedByOthers(STORED, patch, now)).toEqual(expected)
    const ours = { ...STORED, args: undefined }
    check(ours, [])
    check({ ...ours, env: { TOKEN: '${secret:TOKEN}', LANG: '' } }, [])
    check({ ...ours, timeout: 9, env: { LANG: '••••' } }, ['timeout', 'env'])
  })
})

describe('another transport', () => {
  it('leaves out what belongs to the old way alone, and keeps the rest', () => {
    const program = { command: 'a', args: ['b'], cwd: '/workspace', env: { A: '1' }, workspace: 'rw' as const, timeout: 5, toolPrefix: 'x_' }
    expect(withTransport(program, 'http')).toEqual({ transport: 'http', timeout: 5, toolPrefix: 'x_' })
    expect(withTransport(program, 'stdio-docker')).toEqual({ transport: 'stdio-docker', args: ['b'], env: { A: '1' }, workspace: 'rw', timeout: 5, toolPrefix: 'x_' })
    expect(withTransport({ url: 'https://a.test', headers: { A: '1' }, trusted: true }, 'stdio')).toEqual({ transport: 'stdio', trusted: true })
    expect(withTransport({ url: 'https://a.test', headers: { A: '1' } }, 'sse')).toEqual({ transport: 'sse', url: 'https://a.test', headers: { A: '1' } })
  })
})

describe('what stands in the way', () => {
  it('is placed at its field; the rest has none', () => {
    const found = [
      { field: 'config.command', message: 'no' },
      { field: 'env.LANG', message: 'one' },
      { field: 'env.A.B', message: 'two' },
      { field: 'secrets.TOKEN', message: 'again' },
      { field: 'timeout', message: 'too long' },
      { field: 'url', message: 'not here' },
    ]
    expect(placed(found, STORED)).toEqual({
      fields: { 'config.command': 'no', 'config.env': 'LANG: one A.B: two', 'config.timeout': 'too long', 'secrets.TOKEN': 'again' },
      others: ['url: not here'],
    })
    const words = (member: string, name: string) => (member === 'env' ? `our ${name}` : null)
    expect(placed(found.slice(1, 2), STORED, words).fields).toEqual({ 'config.env': 'our LANG' })
  })

  it('is a mask where none was shown', () => {
    const check = (base: ServerConfig, now: ServerConfig, expected: string[]) =>
      expect(strayMasks(base, now).map(({ field, name }) => `${field} ${name}`)).toEqual(expected)
    check(STORED, STORED, [])
    check(STORED, { ...STORED, env: { LANGUAGE: '••••', TOKEN: 'x••••' } }, ['env LANGUAGE', 'env TOKEN'])
    const url = 'https://e.test/mcp?••••'
    check({ url }, { url }, [])
    check({ url }, { url: 'https://e.test/other' }, [])
    check({ url }, { url: 'https://e.test/other?••••' }, ['url '])
  })

  it('is a line that says nothing yet, of a field that is there', () => {
    const draft = { config: STORED, secrets: {}, plain: [], loose: { env: ['HALF'], headers: ['Half'] } }
    expect(looseLines(draft)).toEqual([{ field: 'env', line: 'HALF' }])
  })

  it('is only secrets, each of them typed again or to go', () => {
    const of = (...fields: string[]) => fields.map((field) => ({ field, message: '' }))
    expect(givenAgain(of('secrets.A', 'secrets.B'), { A: 'new' }, ['B'])).toEqual(['A', 'B'])
    expect(givenAgain(of('secrets.A', 'secrets.B'), { A: 'new', B: '' }, [])).toBeNull()
    expect(givenAgain(of('secrets.A', 'env.LANG'), { A: 'new' }, [])).toBeNull()
    expect(givenAgain([], {}, [])).toBeNull()
  })
})

describe('conflicts', () => {
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
})

describe('lines of a field', () => {
  it('reads what it writes', () => {
    const env = { A: '1=2', B: ' x ' }
    expect(pairs(fromPairs(env, '='), '=')).toEqual({ pairs: env, wrong: [] })
    const headers = { Authorization: 'Bearer ${secret:T}' }
    expect(pairs(fromPairs(headers, ':'), ':')).toEqual({ pairs: headers, wrong: [] })
  })

  it('names the lines that are not understood', () => {
    expect(pairs('A=1\nnothing\n\n=x', '=')).toEqual({ pairs: { A: '1' }, wrong: ['nothing', '=x'] })
    expect(lines('a\n \n b')).toEqual(['a', ' b'])
  })

  it('writes any argument in one line, and reads the same', () => {
    const words = ['-c', 'print(1)\nprint(2)', '', ' ', '"quoted"', '"half', "it's", 'a "b"', 'a\r\nb']
    expect(toWords(fromWords(words))).toEqual(words)
    expect(fromWords(['-c', 'a\nb', 'plain'])).toBe('-c\n"a\\nb"\nplain')
  })
})
