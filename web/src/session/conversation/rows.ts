/** Entries as the transcript lays them out: calls stand together, and several finished ones fold into one line. */
import { exitCodeOf } from '@/approval/call/describe'
import type { CallStatus } from '@/wire/types'
import type { CallEntry, Entry, Running, SaidEntry } from './conversation'

/** The most transcript entries that are in the DOM at once: of 150, one place is the answer's that is being written. */
export const WINDOW = 147
export interface CallsRow {
  kind: 'calls'
  key: string
  calls: CallEntry[]
  /** All are finished, and there are several: they are one line until it is opened. */
  isFoldable: boolean
}

/** Stands above an answer that has others beside it. */
export interface VersionsRow {
  kind: 'versions'
  key: string
  group: string
  /** The one that is shown, from 1. */
  n: number
  of: number
}

/** Stands where other sessions took another way. */
export interface BranchRow {
  kind: 'branch'
  key: string
  /** The sessions, the oldest first. */
  ids: string[]
}

export type Row = Exclude<Entry, CallEntry> | CallsRow | VersionsRow | BranchRow

export interface Versions {
  /** How many there are, by group. */
  of: ReadonlyMap<string, number>
  /** The one that a person chose; by itself the newest is shown. */
  shown?: ReadonlyMap<string, number>
  /** The group whose newest version is being made, and may have no entry yet. */
  open?: string | null
}

const NO_VERSIONS: Versions = { of: new Map() }

/** The rows with which another day begins, by the clock here; the first row alone where it is not of today. */
export function firstOfDays(rows: readonly { key: string; at?: string | undefined; calls?: CallEntry[] }[], today: Date): Map<string, string> {
  const firsts = new Map<string, string>()
  let day = today.toDateString()
  let isFirst = true
  for (const { key, at = undefined, calls } of rows) {
    const when = at ?? calls?.[0]?.at
    if (when === undefined) continue
    const its = new Date(when).toDateString()
    if (its !== day || (isFirst && its !== today.toDateString())) firsts.set(key, when)
    day = its
    isFirst = false
  }
  return firsts
}

const FINISHED: ReadonlySet<CallStatus> = new Set<CallStatus>(['completed', 'failed', 'cancelled', 'rejected'])

/** A place up to which sessions have the same past. */
export interface Parting {
  seq: number
  ids: string[]
}

export function rows(entries: readonly Entry[], versions: Versions = NO_VERSIONS, partings: readonly Parting[] = []): Row[] {
  const out: Row[] = []
  const headed = new Set<string>()
  // What parts above the first entry parts on an older page.
  let next = partings.findIndex(({ seq }) => seq >= (entries[0]?.seq ?? 0) - 1)
  for (const entry of entries) {
    for (let parting = partings[next]; parting && parting.seq < entry.seq; parting = partings[++next]) {
      out.push({ kind: 'branch', key: `b${parting.seq}`, ids: parting.ids })
    }
    const { version } = entry
    if (version && version.n !== shownVersion(versions, version.group)) continue
    if (version && !headed.has(version.group)) {
      headed.add(version.group)
      out.push(...headOf(versions, version.group))
    }
    const last = out[out.length - 1]
    if (entry.kind !== 'call') out.push(entry)
    else if (last?.kind === 'calls') last.calls.push(entry)
    else out.push({ kind: 'calls', key: `c${entry.key}`, calls: [entry], isFoldable: false })
  }
  for (const row of out) {
    if (row.kind === 'calls') row.isFoldable = isFoldable(row.calls)
  }
  const { open } = versions
  if (open && !headed.has(open)) out.push(...headOf(versions, open))
  return out
}

export function shownVersion({ of, shown }: Versions, group: string): number {
  return shown?.get(group) ?? of.get(group) ?? 1
}

function headOf(versions: Versions, group: string): VersionsRow[] {
  const of = versions.of.get(group) ?? 1
  return of < 2 ? [] : [{ kind: 'versions', key: `v${group}`, group, n: shownVersion(versions, group), of }]
}

/** What the margin of a row tells that the row above it has not told already. */
export interface Margin {
  author: boolean
  minute: boolean
}

export interface Told {
  kind: string
  key: string
  at?: string
  author?: { id: string } | null
  calls?: CallEntry[]
}

/** A message without an author was read while the agent worked: it is of the person who looks (`me`). */
export function marginsOf(all: readonly Told[], me: string | undefined): Map<string, Margin> {
  const margins = new Map<string, Margin>()
  let before = { who: '', minute: NaN }
  for (const row of all) {
    if (row.kind === 'versions' || row.kind === 'branch') continue
    if (row.kind === 'note') {
      before = { who: '', minute: NaN }
      continue
    }
    const who = row.kind === 'user' ? `user ${row.author?.id ?? me ?? ''}` : 'agent'
    const minute = Math.floor(Date.parse(row.at ?? row.calls?.[0]?.at ?? '') / 60_000)
    const author = who !== before.who
    margins.set(row.key, { author, minute: author || minute !== before.minute })
    before = { who, minute }
  }
  return margins
}

function isFoldable(calls: readonly CallEntry[]): boolean {
  return calls.length > 1 && calls.every(({ call }) => FINISHED.has(call.status))
}

export interface OutcomeCount {
  status: CallStatus
  /** Only of commands that ended with another code than 0. */
  exitCode: number | null
  n: number
}

/** How many calls ended how, in the order of their first. */
export function outcomes(calls: readonly CallEntry[]): OutcomeCount[] {
  const counts = new Map<string, OutcomeCount>()
  for (const { call } of calls) {
    const exitCode = exitCodeOf(call)
    const key = `${call.status} ${exitCode}`
    const count = counts.get(key) ?? { status: call.status, exitCode, n: 0 }
    counts.set(key, { ...count, n: count.n + 1 })
  }
  return [...counts.values()]
}

/** The slice of a list that is drawn. `end` is null while the end of the list is followed. */
export function visible<T>(all: readonly T[], end: number | null): { items: T[]; start: number; end: number } {
  const last = Math.min(end ?? all.length, all.length)
  const start = Math.max(0, last - WINDOW)
  return { items: all.slice(start, last), start, end: last }
}

/** An answer that is being written. */
export interface StreamingRow {
  kind: 'streaming'
  key: string
  at: string
  running: Running
}

/** What an answer is drawn from, whether it is finished or being written. */
export function saidProps(row: SaidEntry | StreamingRow, may: { mayRetry: boolean; mayFork: boolean }) {
  if (row.kind === 'streaming') {
    const { text, reasoning, reasoningMs, since, restarted } = row.running
    return { text, reasoning, reasoningMs, at: since, restarted, streaming: true }
  }
  const { text, reasoning, reasoningMs, at } = row
  return { text, reasoning, reasoningMs, at, entry: row, ...may }
}
