/** What the page of usage shows, as its address says it: a link shows somebody else the same. */
import type { LocationQuery } from 'vue-router'
import type { UsageQuery } from '@/wire/restTypes'

export const BY = ['day', 'model', 'person', 'session', 'purpose', 'server', 'tool'] as const
export type UsageBy = (typeof BY)[number]
export const RANGES = ['7', '30', '90', 'other'] as const
export type Range = (typeof RANGES)[number]
export type SortBy = 'name' | 'cost' | 'tokens' | 'count' | 'duration'

export interface UsageFilters {
  range: Range
  /** The days, in UTC, both included; of a range they are counted back from today. */
  from: string
  to: string
  by: UsageBy
  person: string
  /** `provider/model`. */
  model: string
  sort: SortBy
  order: 'asc' | 'desc'
  cursor: string
}

const DAY_MS = 86_400_000
const IS_DAY = /^\d{4}-\d\d-\d\d$/
const IS_PERSON = /^usr_[0-9a-f]{32}$/

export function isOfCalls(by: UsageBy): boolean {
  return by === 'server' || by === 'tool'
}

/** What can be sorted by, where it is grouped like this. */
export function sortings(by: UsageBy): SortBy[] {
  return isOfCalls(by) ? ['name', 'count', 'duration', 'tokens'] : ['name', 'count', 'tokens', 'cost']
}

function usualSort(by: UsageBy): Pick<UsageFilters, 'sort' | 'order'> {
  if (by === 'day') return { sort: 'name', order: 'desc' }
  return { sort: isOfCalls(by) ? 'count' : 'cost', order: 'desc' }
}

/** Whatever the address says that makes no sense is left out. */
export function filtersOf(query: LocationQuery, now: Date): UsageFilters {
  const given = (name: string) => (typeof query[name] === 'string' ? query[name] : '')
  const by = BY.find((known) => known === given('by')) ?? 'day'
  const range = RANGES.find((known) => known === given('range')) ?? '30'
  const usual = usualSort(by)
  const sort = sortings(by).find((known) => known === given('sort'))
  const order = given('order')
  return {
    ...daysOf(range, { from: given('from'), to: given('to') }, now),
    by,
    person: IS_PERSON.test(given('person')) ? given('person') : '',
    model: isOfCalls(by) ? '' : given('model'),
    sort: sort ?? usual.sort,
    order: order === 'asc' || order === 'desc' ? order : usual.order,
    cursor: /^\d{1,9}$/.test(given('cursor')) ? given('cursor') : '',
  }
}

function daysOf(range: Range, given: { from: string; to: string }, now: Date): Pick<UsageFilters, 'range' | 'from' | 'to'> {
  const back = (days: number) => new Date(now.getTime() - days * DAY_MS).toISOString().slice(0, 10)
  if (range !== 'other') return { range, from: back(Number(range) - 1), to: back(0) }
  const from = IS_DAY.test(given.from) ? given.from : back(29)
  const to = IS_DAY.test(given.to) ? given.to : back(0)
  return from <= to ? { range, from, to } : { range, from: to, to: from }
}

/** The address of these filters, without what is usual. */
export function queryOf(filters: UsageFilters): Record<string, string> {
  const usual = usualSort(filters.by)
  const isUsual = filters.sort === usual.sort && filters.order === usual.order
  const query: [string, string, boolean][] = [
    ['range', filters.range, filters.range !== '30'],
    ['from', filters.from, filters.range === 'other'],
    ['to', filters.to, filters.range === 'other'],
    ['by', filters.by, filters.by !== 'day'],
    ['person', filters.person, filters.person !== ''],
    ['model', filters.model, filters.model !== '' && !isOfCalls(filters.by)],
    ['sort', filters.sort, !isUsual],
    ['order', filters.order, !isUsual],
    ['cursor', filters.cursor, filters.cursor !== ''],
  ]
  return Object.fromEntries(query.filter(([, , isSaid]) => isSaid).map(([name, value]) => [name, value]))
}

/** What the server is asked; `by` and order may be others than the table's. */
export function requestOf(filters: UsageFilters, by: string = filters.by): UsageQuery {
  const [provider, model] = splitModel(filters.model)
  return {
    from: filters.from,
    to: filters.to,
    by,
    ...(filters.person && { person: filters.person }),
    ...(provider && !isOfCalls(filters.by) && { provider, model }),
  }
}

function splitModel(choice: string): [string, string] {
  const slash = choice.indexOf('/')
  return slash < 0 ? ['', ''] : [choice.slice(0, slash), choice.slice(slash + 1)]
}

/** Every day of the range, so that a day without anything has its place in a chart. */
export function eachDay({ from, to }: Pick<UsageFilters, 'from' | 'to'>): string[] {
  const days: string[] = []
  for (let at = Date.parse(from); at <= Date.parse(to) && days.length < 1000; at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10))
  return days
}
