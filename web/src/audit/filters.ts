/** What the page of the audit shows, as its address says it: a link shows somebody else the same. */
import type { LocationQuery } from 'vue-router'
import type { AuditQuery } from '@/wire/restTypes'

/** The families of acts that can be chosen; each is the first word of its acts. */
export const FAMILIES = ['call', 'sign_in', 'user', 'invitation', 'key', 'passkey', 'rule', 'server', 'tool', 'provider', 'secret', 'budget', 'skill', 'session', 'tenant'] as const
export const VERDICTS = ['approved', 'rejected', 'taken_back'] as const
export const FORMATS = ['jsonl', 'csv', 'ocsf', 'cef'] as const
export type Format = (typeof FORMATS)[number]

export interface AuditFilters {
  scope: 'tenant' | 'installation'
  person: string
  session: string
  tool: string
  verdict: string
  /** An act, or a family of acts. */
  act: string
  /** The first and last day, here, as `YYYY-MM-DD`; empty = open. */
  from: string
  to: string
  cursor: string
}

const IS_DAY = /^\d{4}-\d\d-\d\d$/
const DAY_MS = 86_400_000

/** Whatever the address says that makes no sense is left out. */
export function filtersOf(query: LocationQuery): AuditFilters {
  const given = (name: string) => (typeof query[name] === 'string' ? query[name] : '')
  const fit = (name: string, form: RegExp) => (form.test(given(name)) ? given(name) : '')
  return {
    scope: given('scope') === 'installation' ? 'installation' : 'tenant',
    person: fit('person', /^usr_[0-9a-f]{32}$/),
    session: fit('session', /^ses_[0-9a-f]{32}$/),
    tool: given('tool').slice(0, 256),
    verdict: VERDICTS.find((known) => known === given('verdict')) ?? '',
    act: fit('act', /^[a-z_.]{1,64}$/),
    from: fit('from', IS_DAY),
    to: fit('to', IS_DAY),
    cursor: given('cursor').slice(0, 128),
  }
}

/** The address of these filters, without what is usual. */
export function queryOf(filters: AuditFilters): Record<string, string> {
  const { scope, ...rest } = filters
  const said = Object.entries(rest).filter(([, value]) => value !== '')
  return { ...(scope === 'installation' && { scope }), ...Object.fromEntries(said) }
}

/** What the server is asked; the days are those of the person's clock. */
export function requestOf(filters: AuditFilters): AuditQuery {
  const { from, to, ...rest } = queryOf(filters)
  const start = (day: string, days: number) => new Date(new Date(`${day}T00:00:00`).getTime() + days * DAY_MS).toISOString()
  return { ...rest, ...(from && { from: start(from, 0) }), ...(to && { to: start(to, 1) }) }
}

/** True if nothing is left out. */
export function isEverything(filters: AuditFilters): boolean {
  return Object.entries(filters).every(([name, value]) => value === '' || name === 'scope' || name === 'cursor')
}
