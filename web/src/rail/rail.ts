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

export interface Group {
  name: string
  items: SessionItem[]
}

const DAY_MS = 86_400_000

/** What waits for a person comes first, then what is pinned, then by day. */
export function groups(items: readonly SessionItem[], now: Date): Group[] {
  const waiting = items.filter((item) => item.waiting > 0)
  const out: Group[] = waiting.length > 0 ? [{ name: t('rail.waiting'), items: waiting }] : []
  for (const item of items) {
    if (item.waiting > 0) continue
    const name = item.isPinned ? t('rail.pinned') : dayName(new Date(item.updatedAt), now)
    const last = out[out.length - 1]
    if (last?.name === name) last.items.push(item)
    else out.push({ name, items: [item] })
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
