/** Where the transcript of a session parts from those of sessions that share its past. Pure. */
import { computed, onScopeDispose, shallowRef, watch } from 'vue'
import { rest } from '@/wire/rest'
import type { SessionItem } from '@/wire/restTypes'
import type { Seq } from '@/wire/types'

/** What a family of forks tells of its sessions. */
export type Relative = Pick<SessionItem, 'id' | 'createdAt' | 'forkedFrom'>

/** One place where several sessions go different ways. */
export interface Branch {
  /** The last event that all of them have. */
  seq: Seq
  /** The sessions, the oldest first; this one is among them. */
  ids: string[]
}

/** How far the past of a session is that of each of its ancestors; of itself, for ever. */
function lineOf(id: string, family: ReadonlyMap<string, Relative>): Map<string, Seq> {
  const line = new Map<string, Seq>()
  let shared = Infinity
  for (let at: string | undefined = id; at !== undefined && !line.has(at); ) {
    line.set(at, shared)
    const origin: Relative['forkedFrom'] = family.get(at)?.forkedFrom
    shared = Math.min(shared, origin?.seq ?? 0)
    at = origin?.sessionId
  }
  return line
}

/** The last event that two sessions have in common; an ancestor that is deleted still leads from one to the other. */
function sharedSeq(one: ReadonlyMap<string, Seq>, other: ReadonlyMap<string, Seq>): Seq | null {
  for (const [ancestor, seq] of one) {
    const theirs = other.get(ancestor)
    if (theirs !== undefined) return Math.min(seq, theirs)
  }
  return null
}

export function branchesOf(id: string, relatives: readonly Relative[]): Branch[] {
  const family = new Map(relatives.map((relative) => [relative.id, relative]))
  const own = family.get(id)
  if (!own) return []
  const line = lineOf(id, family)
  const at = new Map<Seq, Relative[]>()
  for (const other of relatives) {
    const seq = other.id === id ? null : sharedSeq(line, lineOf(other.id, family))
    if (seq !== null) at.set(seq, [...(at.get(seq) ?? [own]), other])
  }
  const byAge = (a: Relative, b: Relative) => a.createdAt.localeCompare(b.createdAt) || a.id.localeCompare(b.id)
  const branches = [...at].map(([seq, sessions]) => ({ seq, ids: sessions.sort(byAge).map((session) => session.id) }))
  return branches.sort((a, b) => a.seq - b.seq)
}

// Loads the sessions that share a part of their past with the open one: when it opens, and when a fork may have come.

/** `isReady`: the session is known to the server. */
export function useBranches(id: () => string | null, isReady: () => boolean) {
  const family = shallowRef<readonly Relative[]>([])
  const branches = computed<readonly Branch[]>(() => branchesOf(id() ?? '', family.value))
  let asked = 0

  async function refresh(): Promise<void> {
    const session = id()
    const turn = ++asked
    if (session === null || !isReady()) return
    // Without an answer the transcript is whole all the same.
    const items = await rest.forks(session).then((answer) => answer.items, () => null)
    if (turn === asked && items) family.value = items
  }

  watch([id, isReady], ([now], [before] = [null, false]) => {
    if (now !== before) family.value = []
    void refresh()
  }, { immediate: true })
  onScopeDispose(() => (asked += 1))

  return { branches }
}
