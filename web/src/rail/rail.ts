/** Whether the rail is narrow (wide screens) or its sheet is open (phones), and how its list is grouped. */
import { ref, shallowRef, watch } from 'vue'
import { recall, remember } from '@/browser/storage'
import { t, locale } from '@/locales'
import type { SessionItem } from '@/wire/restTypes'

export const isSheetOpen = ref(false)
export const isNarrow = ref(recall('rail') === 'narrow')
watch(isNarrow, (value) => remember('rail', value ? 'narrow' : null))

/** The sessions that are selected, while several are; null otherwise. */
export const selected = shallowRef<ReadonlySet<string> | null>(null)

/** Selects or unselects a session; with `to`, everything from the one that was selected last. */
export function select(ids: readonly string[], id: string, range: boolean): void {
  const chosen = new Set(selected.value)
  const last = [...chosen].at(-1)
  const [from, to] = [range && last !== undefined ? ids.indexOf(last) : -1, ids.indexOf(id)]
  if (from >= 0 && to >= 0) {
    for (const between of ids.slice(Math.min(from, to), Math.max(from, to) + 1)) chosen.add(between)
  } else if (!chosen.delete(id)) {
    chosen.add(id)
  }
  selected.value = chosen
}

/** A session with those that share a part of its past: one entry of the list, which shows one of them. */
export interface Family {
  key: string
  item: SessionItem
  /** All of them, the oldest first. */
  members: SessionItem[]
  /** How many calls wait in all of them. */
  waiting: number
}

export interface Group {
  name: string
  families: Family[]
}

/** Every session by itself: several can be selected only where each is seen. */
export function alone(items: readonly SessionItem[]): Family[] {
  return items.map((item) => ({ key: item.id, item, members: [item], waiting: item.waiting }))
}

/** Forks stand where the newest of them would. The one that is open is shown, else one that waits, else the newest. */
export function families(items: readonly SessionItem[], openId?: string): Family[] {
  const known = new Map(items.map((item) => [item.id, item]))
  const found = new Map<string, SessionItem[]>()
  for (const item of items) {
    const root = rootOf(item, known)
    found.set(root, [...(found.get(root) ?? []), item])
  }
  return [...found].map(([key, all]) => ({
    key,
    item: all.find(({ id }) => id === openId) ?? all.find(({ waiting }) => waiting > 0) ?? (all[0] as SessionItem),
    members: all.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt) || a.id.localeCompare(b.id)),
    waiting: all.reduce((sum, { waiting }) => sum + waiting, 0),
  }))
}

/** The oldest ancestor that is known, or named by one that is. */
function rootOf(item: SessionItem, known: ReadonlyMap<string, SessionItem>): string {
  const seen = new Set<string>()
  let id = item.id
  for (let origin = item.forkedFrom; origin && !seen.has(id); origin = known.get(id)?.forkedFrom) {
    seen.add(id)
    id = origin.sessionId
  }
  return id
}

const DAY_MS = 86_400_000

/** What waits for a person comes first, then what is pinned, then by day. */
export function groups(entries: readonly Family[], now: Date): Group[] {
  const waiting = entries.filter((family) => family.waiting > 0)
  const out: Group[] = waiting.length > 0 ? [{ name: t('rail.waiting'), families: waiting }] : []
  for (const family of entries) {
    if (family.waiting > 0) continue
    const isPinned = family.members.some((item) => item.isPinned)
    // Any of them is in its place by the newest.
    const newest = family.members.reduce((at, item) => (item.updatedAt > at ? item.updatedAt : at), '')
    const name = isPinned ? t('rail.pinned') : dayName(new Date(newest), now)
    const last = out[out.length - 1]
    if (last?.name === name) last.families.push(family)
    else out.push({ name, families: [family] })
  }
  return out
}

function dayName(at: Date, now: Date): string {
  const days = Math.round((startOfDay(now) - startOfDay(at)) / DAY_MS)
  if (days <= 0) return t('rail.today')
  if (days === 1) return t('rail.yesterday')
  if (days < 7) return new Intl.DateTimeFormat(locale(), { weekday: 'long' }).format(at)
  return new Intl.DateTimeFormat(locale(), { month: 'long', year: 'numeric' }).format(at)
}

function startOfDay(date: Date): number {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime()
}
