/** What the list of tenants shows, as its address says it. */
import type { LocationQuery } from 'vue-router'
import type { Tenant } from './door'

export const STATES = ['active', 'suspended', 'deleting'] as const
export const ORDERS = ['name', 'people', 'sessions', 'active', 'created'] as const
/** The longest name. */
export const MOST_CHARACTERS = 64

export interface TenantFilters {
  search: string
  /** Empty = tenants in every state. */
  state: Tenant['state'] | ''
  sort: (typeof ORDERS)[number]
}

/** Whatever the address says that makes no sense is left out. */
export function filtersOf(query: LocationQuery): TenantFilters {
  const given = (name: string) => (typeof query[name] === 'string' ? query[name] : '')
  return {
    search: given('search').slice(0, MOST_CHARACTERS),
    state: STATES.find((known) => known === given('state')) ?? '',
    sort: ORDERS.find((known) => known === given('sort')) ?? 'name',
  }
}

/** The address of these filters, without what is usual. */
export function queryOf({ search, state, sort }: TenantFilters): Record<string, string> {
  return { ...(search && { search }), ...(state && { state }), ...(sort !== 'name' && { sort }) }
}

/** The tenants that fit, in the chosen order; those that are alike in it are in the order of their names. */
export function fitting(tenants: readonly Tenant[], { search, state, sort }: TenantFilters): Tenant[] {
  const wanted = search.trim().toLowerCase()
  const found = tenants.filter((tenant) => tenant.name.includes(wanted) && (state === '' || tenant.state === state))
  return found.sort((a, b) => compare[sort](a, b) || (a.name < b.name ? -1 : 1))
}

const time = (at: string | null | undefined) => (at ? new Date(at).getTime() : 0)

const compare: Record<TenantFilters['sort'], (a: Tenant, b: Tenant) => number> = {
  name: () => 0,
  people: (a, b) => b.people - a.people,
  sessions: (a, b) => b.sessions - a.sessions,
  active: (a, b) => time(b.activeAt) - time(a.activeAt),
  created: (a, b) => time(b.createdAt) - time(a.createdAt),
}
