/** The requests about the person's own connections to servers. */
import { t } from '@/locales'
import { reasonOr, request } from '@/wire/request'
import type { Schemas } from 'sepal-client'
import './connect.en.json'

export type ServerConnection = Schemas['ServerConnection']
export type FinishConnection = Schemas['FinishConnectionRequest']

export const door = {
  list: () => request('get', '/api/mcp/oauth/connections'),
  begin: (name: string, returnTo: string) => request('post', '/api/mcp/{name}/connect', { path: { name }, body: { returnTo } }),
  finish: (body: FinishConnection) => request('post', '/api/mcp/oauth/callback', { body }),
  end: (name: string) => request('delete', '/api/mcp/{name}/connect', { path: { name } }),
  dismiss: (name: string) => request('post', '/api/mcp/{name}/connect/dismiss', { path: { name } }),
}

export function reasonOf(error: unknown): string {
  return reasonOr(error, t('connect.noAnswer'))
}

/** Leaves for the authorisation server; only an address of the web is one. */
export async function leaveFor(name: string, returnTo: string, go = (url: string) => location.assign(url)): Promise<void> {
  const { url } = await door.begin(name, returnTo)
  if (!['http:', 'https:'].includes(new URL(url).protocol)) throw new TypeError('no address of the web')
  go(url)
}
