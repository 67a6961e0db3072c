/** The requests about custom roles and groups. They come with their parts, and not with every session. */
import type { Schemas } from 'sepal-client'
import { t } from '@/locales'
import { reasonOr, request } from '@/wire/request'
import type { Right } from '@/wire/restTypes'
import '@/settings/texts.en.json'

export type { Right } from '@/wire/restTypes'
export type CustomRole = Schemas['RoleItem']
export type RoleList = Schemas['RoleList']
export type Group = Schemas['GroupItem']
export type GroupDetails = Schemas['GroupDetails']
export type PersonRoles = Schemas['PersonRoles']

export const door = {
  roles: () => request('get', '/api/roles', {}),
  addRole: (body: { name: string; description: string; rights: Right[] }) => request('post', '/api/roles', { body }),
  changeRole: (id: string, body: { name: string; description: string; rights: Right[] }) => request('patch', '/api/roles/{id}', { path: { id }, body }),
  deleteRole: (id: string) => request('delete', '/api/roles/{id}', { path: { id } }),
  rolesOf: (id: string) => request('get', '/api/people/{id}/roles', { path: { id } }),
  setRolesOf: (id: string, roles: string[]) => request('put', '/api/people/{id}/roles', { path: { id }, body: { roles } }),

  groups: () => request('get', '/api/groups', {}),
  group: (id: string) => request('get', '/api/groups/{id}', { path: { id } }),
  addGroup: (body: { name: string; description: string }) => request('post', '/api/groups', { body }),
  changeGroup: (id: string, body: { name?: string; description?: string; roles?: string[] }) => request('patch', '/api/groups/{id}', { path: { id }, body }),
  deleteGroup: (id: string) => request('delete', '/api/groups/{id}', { path: { id } }),
  setAccess: (id: string, body: { models?: string[]; servers?: string[] }) => request('put', '/api/groups/{id}/access', { path: { id }, body }),
  /** The names of the servers that groups can keep for their members. */
  servers: async () => (await request('get', '/api/mcp', {})).items.filter(({ source }) => source !== 'bundled' && source !== 'person').map(({ name }) => name),
  join: (id: string, person: string) => request('put', '/api/groups/{id}/members/{person}', { path: { id, person } }),
  leave: (id: string, person: string) => request('delete', '/api/groups/{id}/members/{person}', { path: { id, person } }),
}

/** Why a request was refused, in words. */
export function reasonOf(error: unknown): string {
  return reasonOr(error, t('settings.noAnswer'))
}
