/** The requests about the tenants of the installation, for its administrators. */
import type { Schemas } from 'sepal-client'
import { request } from '@/wire/request'

export type Tenant = Schemas['TenantItem']

export const door = {
  /** All of them: the server has no search and no order but that by name. */
  tenants: async () => (await request('get', '/api/tenants', {})).items,
  /** The link for the first owner is in this answer and in no other. */
  add: (name: string) => request('post', '/api/tenants', { body: { name } }),
  suspend: (id: string, suspended: boolean) => request('patch', '/api/tenants/{id}', { path: { id }, body: { suspended } }),
  /** Begins the deletion; the list says when it is done. */
  remove: ({ id, name }: Tenant) => request('delete', '/api/tenants/{id}', { path: { id }, body: { name } }),
}
