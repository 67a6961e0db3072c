/** What the list of people shows, as its address says it. */
import type { LocationQuery } from 'vue-router'
import type { PeopleQuery, Role } from './door'
import { ROLES } from './roles'

export const STATES = ['active', 'disabled'] as const
export const ORDERS = ['name', 'role', 'last_seen', 'created'] as const
/** The longest name. */
export const MOST_CHARACTERS = 64

export interface PeopleFilters {
  search: string
  /** Empty = people of every role. */
  role: Role | ''
  /** Empty = everybody. */
  state: (typeof STATES)[number] | ''
  sort: (typeof ORDERS)[number]
}

/** Whatever the address says that makes no sense is left out. */
export function filtersOf(query: LocationQuery): PeopleFilters {
  const given = (name: string) => (typeof query[name] === 'string' ? query[name] : '')
  return {
    search: given('search').slice(0, MOST_CHARACTERS),
    role: ROLES.find((known) => known === given('role')) ?? '',
    state: STATES.find((known) => known === given('state')) ?? '',
    sort: ORDERS.find((known) => known === given('sort')) ?? 'name',
  }
}

/** The address of these filters, without what is usual. */
export function queryOf({ search, role, state, sort }: PeopleFilters): Record<string, string> {
  return { ...(search && { search }), ...(role && { role }), ...(state && { state }), ...(sort !== 'name' && { sort }) }
}

/** What the server is asked. */
export function requestOf({ search, role, state, sort }: PeopleFilters): PeopleQuery {
  return { sort, ...(search.trim() && { search: search.trim() }), ...(role && { role }), ...(state && { disabled: state === 'disabled' }) }
}

/** True if nobody is left out. */
export function isEverybody({ search, role, state }: PeopleFilters): boolean {
  return search.trim() === '' && role === '' && state === ''
}
