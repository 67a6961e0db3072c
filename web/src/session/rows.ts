/** Entries as the transcript lays them out: calls stand together, and a long run of finished ones folds. */
import type { CallStatus } from '@/wire/types'
import type { CallEntry, Entry } from './fold'

/** The most transcript entries that are in the DOM at once. */
export const WINDOW = 150
/** A run of more finished calls than this is one row until it is opened. */
export const FOLDED_CALLS = 5

export interface CallsRow {
  kind: 'calls'
  key: string
  calls: CallEntry[]
  isFoldable: boolean
}

export type Row = Exclude<Entry, CallEntry> | CallsRow

const FINISHED: ReadonlySet<CallStatus> = new Set<CallStatus>(['completed', 'failed', 'cancelled', 'rejected'])

export function rows(entries: readonly Entry[]): Row[] {
  const out: Row[] = []
  for (const entry of entries) {
    const last = out[out.length - 1]
    if (entry.kind !== 'call') out.push(entry)
    else if (last?.kind === 'calls') last.calls.push(entry)
    else out.push({ kind: 'calls', key: `c${entry.key}`, calls: [entry], isFoldable: false })
  }
  for (const row of out) {
    if (row.kind === 'calls') row.isFoldable = isFoldable(row.calls)
  }
  return out
}

function isFoldable(calls: readonly CallEntry[]): boolean {
  return calls.length > FOLDED_CALLS && calls.every(({ call }) => FINISHED.has(call.status))
}

export function countByStatus(calls: readonly CallEntry[]): [CallStatus, number][] {
  const counts = new Map<CallStatus, number>()
  for (const { call } of calls) counts.set(call.status, (counts.get(call.status) ?? 0) + 1)
  return [...counts]
}

/** The slice of a list that is drawn. `end` is null while the end of the list is followed. */
export function visible<T>(all: readonly T[], end: number | null): { items: T[]; start: number; end: number } {
  const last = Math.min(end ?? all.length, all.length)
  const start = Math.max(0, last - WINDOW)
  return { items: all.slice(start, last), start, end: last }
}
