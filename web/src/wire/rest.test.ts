import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { usePerson } from '@/stores/person'
import { request } from './request'
import { rest } from './rest'
import type { Me } from './restTypes'

interface Asked {
  path: string
  token: string | undefined
}

let asked: Asked[]
let me: Me

/** The gateway as far as it knows cookies: one token fits, and nobody is known without a cookie. */
function serve(token: string | null, status = 200): void {
  vi.stubGlobal('fetch', async (url: string, { method, headers }: { method: string; headers: Record<string, string> }) => {
    const path = new URL(url, 'http://sepal.test').pathname
    asked.push({ path, token: headers['X-CSRF-Token'] })
    if (status !== 200) return new Response('{}', { status })
    if (token === null) return Response.json({ code: 'unauthorized' }, { status: 401 })
    if (path.endsWith('/auth/me')) return Response.json({ ...me, csrfToken: token })
    if (method !== 'GET' && headers['X-CSRF-Token'] !== token) {
      const errors = [{ field: 'X-CSRF-Token', message: 'the CSRF token does not fit the sign-in' }]
      return Response.json({ code: 'forbidden', errors }, { status: 403 })
    }
    return method === 'GET' ? Response.json({ items: [] }) : new Response(null, { status: 204 })
  })
}

beforeEach(() => {
  setActivePinia(createPinia())
  asked = []
  me = {
    user: { id: 'ana', name: 'Ana', role: 'owner', installationAdmin: false, rights: [] },
    tenant: { id: 't', name: 't' },
    csrfToken: 'first',
    installation: { name: 'Sepal', version: '0.1.0' },
    authMode: 'password',
    encrypted: true,
  }
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

it('lets a person sign in again when the server no longer knows the cookie', async () => {
  const person = usePerson()
  person.enter(me)
  serve(null)
  await expect(rest.servers()).rejects.toMatchObject({ status: 401 })
  expect(person.me).toBeNull()
  // Signed out already is signed out.
  await person.signOut()
})

it('a wrong password is not the end of a sign-in', async () => {
  const person = usePerson()
  person.enter(me)
  serve(null)
  await expect(rest.signIn({ name: 'ana', password: 'x' })).rejects.toMatchObject({ status: 401 })
  expect(person.me).not.toBeNull()
})

it('writes with the token of the newest sign-in, asked for once', async () => {
  usePerson().enter(me)
  serve('second')
  await rest.deleteServer('files')
  await rest.deleteServer('files')
  expect(asked.map(({ path, token }) => `${path} ${token ?? ''}`.trim())).toEqual([
    '/api/mcp/files first', '/api/auth/me', '/api/mcp/files second', '/api/mcp/files second',
  ])
})

it('does nothing in the name of somebody who signed in meanwhile', async () => {
  const person = usePerson()
  person.enter(me)
  me = { ...me, user: { ...me.user, id: 'bo' } }
  serve('second')
  await expect(rest.deleteServer('files')).rejects.toMatchObject({ status: 403 })
  expect(person.me?.user.id).toBe('bo')
  expect(asked).toHaveLength(2)
})

it('asks again who is signed in after the server could not say', async () => {
  vi.useFakeTimers()
  const person = usePerson()
  serve('first', 503)
  await person.identify().catch(() => person.identifyLater())
  await vi.advanceTimersByTimeAsync(3_000)
  expect([person.isKnown, asked.length]).toEqual([false, 2])
  serve('first')
  await vi.advanceTimersByTimeAsync(3_000)
  expect(person.me?.user.id).toBe('ana')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(asked).toHaveLength(3)
})

describe('requests', () => {
  const asked: { address: string; method: string; body: unknown }[] = []

  function serve(): void {
    asked.length = 0
    vi.stubGlobal('fetch', async (address: string, { method, body }: { method: string; body?: string }) => {
      asked.push({ address: address.replace(/^https?:\/\/[^/]+/, ''), method, body: body && JSON.parse(body) })
      return method === 'GET' ? Response.json({ items: [] }) : new Response(null, { status: 204 })
    })
  }

  afterEach(() => vi.unstubAllGlobals())

  it('puts parameters where the path names them, and leaves out what is not given', async () => {
    serve()
    expect(await request('get', '/api/sessions', { query: { state: 'waiting', cursor: undefined } })).toEqual({ items: [] })
    expect(await request('put', '/api/mcp/{name}/secrets/{secret}', { path: { name: 'a/b', secret: 'KEY?' }, body: { value: 'x' } })).toBe(undefined)
    expect(asked).toEqual([
      { address: '/api/sessions?state=waiting', method: 'GET', body: undefined },
      { address: '/api/mcp/a%2Fb/secrets/KEY%3F', method: 'PUT', body: { value: 'x' } },
    ])
  })

  it.each([202, 204])('are answered with nothing where the answer has no content (%i)', async (status) => {
    vi.stubGlobal('fetch', async () => new Response(null, { status }))
    expect(await request('delete', '/api/tenants/{id}', { path: { id: 'ten_1' }, body: { name: 'acme' } })).toBe(undefined)
  })
})

/** Never called: what is wrong here must not compile. */
export const wrong = [
  // @ts-expect-error There is no such path.
  () => request('get', '/api/nothing'),
  // @ts-expect-error The path has no such method.
  () => request('post', '/api/system'),
  // @ts-expect-error The path names a parameter.
  () => request('get', '/api/mcp/{name}'),
  // @ts-expect-error The body is another one.
  () => request('patch', '/api/sessions/{id}', { path: { id: 'a' }, body: { name: 'x' } }),
  // @ts-expect-error The query has no such field.
  () => request('get', '/api/sessions', { query: { status: 'waiting' } }),
  // @ts-expect-error The answer has no such field.
  async () => (await request('get', '/api/system')).name,
]

