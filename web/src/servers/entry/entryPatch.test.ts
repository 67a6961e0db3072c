import { describe, expect, it } from 'vitest'
import type { ServerConfig } from '@/wire/restTypes'
import { changedByOthers, givenAgain, looseLines, patchOf, placed, strayMasks, withTransport } from './entryPatch'

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
