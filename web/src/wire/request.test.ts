import { afterEach, expect, it, vi } from 'vitest'
import { request } from './request'

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
