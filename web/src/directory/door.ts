/** The requests about the directory (SCIM) of a team. They come with their part, and not with every session. */
import type { Schemas } from 'sepal-client'
import { t } from '@/locales'
import { reasonOr, request } from '@/wire/request'
import '@/settings/texts.en.json'

export type ScimToken = Schemas['ScimTokenItem']
export type ScimTokens = Schemas['ScimTokenList']
export type DirectoryPerson = Schemas['DirectoryPersonItem']
export type DirectoryGroup = Schemas['DirectoryGroupItem']

export const door = {
  tokens: () => request('get', '/api/scim-tokens', {}),
  /** The secret is in this answer and in no other. */
  addToken: (body: { name: string; role: 'viewer' | 'member'; deletes: boolean }) => request('post', '/api/scim-tokens', { body }),
  revokeToken: (id: string) => request('delete', '/api/scim-tokens/{id}', { path: { id } }),

  people: (query: { cursor?: string; limit: number }) => request('get', '/api/directory/people', { query }),
  linkPerson: (id: string, body: { userName: string; externalId?: string }) => request('put', '/api/directory/people/{id}', { path: { id }, body }),
  unlinkPerson: (id: string) => request('delete', '/api/directory/people/{id}', { path: { id } }),
  groups: () => request('get', '/api/directory/groups', {}),
  linkGroup: (id: string, body: { externalId?: string }) => request('put', '/api/directory/groups/{id}', { path: { id }, body }),
  unlinkGroup: (id: string) => request('delete', '/api/directory/groups/{id}', { path: { id } }),
}

/** Why a request was refused, in words. */
export function reasonOf(error: unknown): string {
  return reasonOr(error, t('settings.noAnswer'))
}
