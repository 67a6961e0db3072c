import { describe, expect, it } from 'vitest'
import type { ServerConfig } from '@/wire/restTypes'
import { hasHosts, plainSecrets, references, seal, sealAgain, toSend, unseal, withHosts, type Draft } from './secrets'

const draft = (config: ServerConfig): Draft => ({ config, secrets: {}, plain: [] })

describe('what looks like a secret', () => {
  it('is sealed by its name, in variables and headers', () => {
    const sealed = seal(
      draft({
        command: 'x',
        env: { GITHUB_TOKEN: 'ghp_1', LANG: 'C', EMPTY_KEY: '', OTHER_KEY: '${secret:MINE}' },
        headers: { Authorization: 'Bearer abc', 'X-Api-Key': 'k', Accept: '*/*' },
      }),
    )
    expect(sealed.config.env).toEqual({
      GITHUB_TOKEN: '${secret:GITHUB_TOKEN}',
      LANG: 'C',
      EMPTY_KEY: '',
      OTHER_KEY: '${secret:MINE}',
    })
    expect(sealed.config.headers).toEqual({
      Authorization: 'Bearer ${secret:AUTHORIZATION}',
      'X-Api-Key': '${secret:X_API_KEY}',
      Accept: '*/*',
    })
    expect(sealed.secrets).toEqual({ GITHUB_TOKEN: 'ghp_1', AUTHORIZATION: 'abc', X_API_KEY: 'k' })
    expect(references(sealed.config)).toEqual(['GITHUB_TOKEN', 'MINE', 'AUTHORIZATION', 'X_API_KEY'])
    expect(seal(sealed)).toEqual(sealed)
  })

  it('stands in plain text only when the person wants it so, and can be sealed again', () => {
    const sealed = seal(draft({ command: 'x', env: { API_KEY: 'k' } }))
    const open = unseal(sealed, 'API_KEY')
    expect(open.config.env).toEqual({ API_KEY: 'k' })
    expect(open.secrets).toEqual({})
    expect(seal(open)).toEqual(open)
    expect(plainSecrets(open)).toEqual(['API_KEY'])
    expect(sealAgain(open, 'API_KEY')).toEqual(sealed)
  })

  it('gets a name of its own where two values differ', () => {
    const sealed = seal(draft({ command: 'x', env: { API_KEY: 'a' }, headers: { 'Api-Key': 'b', api_key: 'a' } }))
    expect(sealed.config.headers).toEqual({ 'Api-Key': '${secret:API_KEY_2}', api_key: '${secret:API_KEY}' })
  })

  it('never takes the name of a secret that is set already', () => {
    const kept = { ...draft({ command: 'x', env: { API_KEY: 'new', OTHER_KEY: '${secret:API_KEY}' } }), kept: ['API_KEY'] }
    const sealed = seal(kept)
    expect(sealed.config.env).toEqual({ API_KEY: '${secret:API_KEY_2}', OTHER_KEY: '${secret:API_KEY}' })
    expect(toSend(sealed)).toEqual({ API_KEY_2: 'new' })
    expect(seal(sealed)).toEqual(sealed)
  })

  it('is sent only when something refers to it and it was typed', () => {
    const sealed = { ...draft({ url: 'https://e.test/mcp?key=${secret:A}', env: { B: '${secret:B}' } }), secrets: { A: '1', B: '', C: '3' } }
    expect(toSend(sealed)).toEqual({ A: '1' })
  })
})

describe('where a secret goes in on the way', () => {
  const config = { command: 'x', env: { T: '${secret:TOKEN}' }, network: ['a.example', 'b.example'] }

  it('is possible for what runs here and reaches hosts', () => {
    expect(hasHosts(config)).toBe(true)
    expect(hasHosts({ ...config, network: 'none' })).toBe(false)
    expect(hasHosts({ ...config, network: [] })).toBe(false)
    expect(hasHosts({ url: 'https://a.example', network: ['a.example'] })).toBe(false)
  })

  it('is kept by name, and goes with its last host or its last reference', () => {
    const one = withHosts(config, 'TOKEN', ['a.example'])
    expect(one.secretHosts).toEqual({ TOKEN: ['a.example'] })
    expect(withHosts(one, 'TOKEN', ['b.example']).secretHosts).toEqual({ TOKEN: ['b.example'] })
    expect(withHosts(one, 'TOKEN', [])).not.toHaveProperty('secretHosts')
    expect(withHosts({ ...one, env: {} }, 'OTHER', ['a.example'])).not.toHaveProperty('secretHosts')
    expect(config).not.toHaveProperty('secretHosts')
  })
})
