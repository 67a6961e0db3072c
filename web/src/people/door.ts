/** The requests about people, invitations, API keys, and one's own sign-ins and password. They come with their parts, and not with every session. */
import type { QueryOf, Schemas } from 'sepal-client'
import { t } from '@/locales'
import { address } from '@/wire/base'
import { reasonOr, request } from '@/wire/request'
import '@/settings/texts.en.json'

export type Role = Schemas['UserRole']
export type Person = Schemas['PersonItem']
export type PeopleQuery = NonNullable<QueryOf<'get', '/api/people'>>
export type Invitation = Schemas['InvitationItem']
export type Key = Schemas['KeyItem']
export type KeyScope = Schemas['KeyScopeWord']
export type NewKey = { name: string; expiresAt?: string; scopes?: KeyScope[]; sessions?: string[]; servers?: string[] }
export type SignIn = Schemas['SignInItem']
export type HandOverFailure = Schemas['HandOverFailure']

/** The most people that one answer lists. */
const MOST = 1000

export const door = {
  people: (query: PeopleQuery) => request('get', '/api/people', { query }),
  change: (id: string, body: { name?: string; role?: Role; disabled?: boolean }) => request('patch', '/api/people/{id}', { path: { id }, body }),
  remove: ({ id, name }: Person) => request('delete', '/api/people/{id}', { path: { id }, body: { name } }),
  /** A part of the sessions; `next` of the answer leads on. */
  handOver: (id: string, body: { to: string; after?: string }) => request('post', '/api/people/{id}/hand-over', { path: { id }, body }),
  /** All people, by name. */
  everybody: async () => {
    const all: Person[] = []
    let cursor: string | undefined
    do {
      const page = await door.people({ limit: MOST, ...(cursor && { cursor }) })
      all.push(...page.items)
      cursor = page.nextCursor ?? undefined
    } while (cursor)
    return all
  },
  /** Whoever chose passkeys alone may use their password again. */
  allowPassword: (id: string) => request('delete', '/api/people/{id}/passkey-only', { path: { id } }),
  signOut: (id: string) => request('post', '/api/people/{id}/sign-out', { path: { id } }),

  invitations: () => request('get', '/api/invitations', {}),
  /** The link is in this answer and in no other. */
  invite: (body: { role: Role; note: string; days: number }) => request('post', '/api/invitations', { body }),
  withdraw: (id: string) => request('delete', '/api/invitations/{id}', { path: { id } }),
  readInvitation: (secret: string) => request('post', '/api/auth/invitation/read', { body: { secret } }),
  join: (body: { secret: string; name: string; password: string }) => request('post', '/api/auth/invitation', { body }),

  keys: (query: { all?: boolean; cursor?: string; limit?: number }) => request('get', '/api/keys', { query }),
  /** The secret is in this answer and in no other. */
  addKey: (body: NewKey) => request('post', '/api/keys', { body }),
  revokeKey: (id: string) => request('delete', '/api/keys/{id}', { path: { id } }),

  serviceAccounts: (query: { cursor?: string; limit?: number }) => request('get', '/api/service-accounts', { query }),
  addServiceAccount: (body: { name: string; role: Role }) => request('post', '/api/service-accounts', { body }),
  /** The secret is in this answer and in no other. */
  addServiceKey: (id: string, body: NewKey) => request('post', '/api/service-accounts/{id}/keys', { path: { id }, body }),

  signIns: () => request('get', '/api/sign-ins', {}),
  endSignIn: (id: string) => request('delete', '/api/sign-ins/{id}', { path: { id } }),
  /** `old` is left out by those who have none. */
  changePassword: (body: { old?: string; new: string }) => request('put', '/api/password', { body }),
}

/** Why a request was refused, in words. */
export function reasonOf(error: unknown): string {
  return reasonOr(error, t('settings.noAnswer'))
}

/** The link of an invitation. A server that does not know its address leaves it to the page. */
export function wholeLink(link: string): string {
  return link.startsWith('/') ? address(link.slice(1)) : link
}

/** The address of the file with all sessions of a person. */
export function archiveOf(id: string): string {
  return address(`api/people/${id}/archive`)
}

/** The people with these ids, by id; who has been removed is left out. */
export async function findPeople(ids: Iterable<string>): Promise<Map<string, Person>> {
  const found = new Map<string, Person>()
  const missing = new Set(ids)
  let cursor: string | undefined
  while (missing.size > 0) {
    const page = await door.people({ sort: 'created', limit: MOST, ...(cursor && { cursor }) })
    for (const person of page.items) {
      if (missing.delete(person.id)) found.set(person.id, person)
    }
    if (!page.nextCursor) break
    cursor = page.nextCursor
  }
  return found
}
