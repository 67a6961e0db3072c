/** What waits in all sessions, as the inbox shows it: read, kept current by news of sessions, and decided over REST. */
import { computed, onBeforeUnmount, ref, shallowRef } from 'vue'
import { useTimeouts } from '@/browser/scheduling'
import { failureWords } from '@/session/store/commands'
import { useWaiting } from '@/stores/waiting'
import { isObject } from '@/wire/json'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { SessionItem, WaitingItem } from '@/wire/restTypes'
import type { CallStatus, ElicitationItem, JsonObject, Person, QueueCall, Seq, StoredEvent } from '@/wire/types'

/** How long it is said that a session is gone. */
export const GONE_MS = 3_000
/** Events that say what became of a batch. */
const MOST_EVENTS = 500

export function useInbox() {
  const waiting = useWaiting()
  const later = useTimeouts()
  const groups = shallowRef<WaitingGroup[]>([])
  const nextCursor = ref<string | null>(null)
  const isRead = ref(false)
  const isFailed = ref(false)
  /** What a decision was refused with, by session. */
  const refusals = shallowRef<ReadonlyMap<string, string>>(new Map())
  /** Sessions that are being read, and whether there was news meanwhile. */
  const reading = new Map<string, boolean>()
  let asked = 0

  const stop = waiting.listen({ changed, removed, stale: () => void load() })
  onBeforeUnmount(() => {
    asked += 1
    stop()
  })

  /** The first page anew. What it no longer has is looked for on its own, so that it says what became of it. */
  async function load(): Promise<void> {
    const turn = ++asked
    try {
      const page = await rest.approvals(null)
      if (turn !== asked) return
      const listed = new Set(page.items.map(({ sessionId }) => sessionId))
      const before = groups.value
      for (const item of page.items) show(groupOf(item))
      for (const { sessionId } of before) if (!listed.has(sessionId)) void read(sessionId)
      if (!isRead.value || before.length === 0) nextCursor.value = page.nextCursor ?? null
      isRead.value = true
      isFailed.value = false
    } catch {
      if (turn === asked) isFailed.value = true
    }
  }

  async function loadMore(): Promise<void> {
    const [turn, cursor] = [asked, nextCursor.value]
    if (cursor === null) return
    try {
      const page = await rest.approvals(cursor)
      if (turn !== asked) return
      for (const item of page.items) show(groupOf(item))
      nextCursor.value = page.nextCursor ?? null
      isFailed.value = false
    } catch {
      if (turn === asked) isFailed.value = true
    }
  }

  function changed(item: Pick<SessionItem, 'id' | 'waiting'>): void {
    if (item.waiting > 0 || groupWith(item.id) !== undefined) void read(item.id)
  }

  function removed(id: string): void {
    if (groupWith(id) !== undefined) sayGone(id)
  }

  /** One session as it is now. News that come while it is read are read after it. */
  async function read(id: string): Promise<void> {
    if (reading.has(id)) return void reading.set(id, true)
    reading.set(id, false)
    try {
      const { items } = await rest.approvals(null, id)
      if (items[0] !== undefined) show(groupOf(items[0]))
      else await conclude(id)
    } catch {
      // The next news or connection reads it again.
    }
    const hasNews = reading.get(id) === true
    reading.delete(id)
    if (hasNews) await read(id)
  }

  /** Nothing waits in it any more: its calls say who decided them, for as long as the tray shows that. */
  async function conclude(id: string): Promise<void> {
    const group = groupWith(id)
    if (group === undefined || group.isGone) return
    // What became of it in another's session is not theirs to see.
    if (group.owner !== undefined) return remove(id)
    try {
      const { items } = await rest.eventsAfter(id, group.seq, MOST_EVENTS)
      const calls = withEvents(group.calls, items).map((call) => (call.status === 'pending' ? { ...call, status: 'cancelled' as const } : call))
      if (groupWith(id) === group) replaceOrRemove({ ...group, calls, asked: [] })
    } catch (error) {
      if (error instanceof RequestError && error.status === 404) sayGone(id)
    }
  }

  function sayGone(id: string): void {
    const group = groupWith(id)
    if (group === undefined || group.isGone) return
    replace({ ...group, isGone: true })
    later(GONE_MS, () => remove(id))
  }

  function groupWith(id: string): WaitingGroup | undefined {
    return groups.value.find(({ sessionId }) => sessionId === id)
  }

  function show(group: WaitingGroup): void {
    // What became of a call of an earlier turn is asked in its session.
    groups.value = withGroup(groups.value, { ...group, calls: group.calls.filter(({ status }) => status !== 'unknown') })
  }

  /** A session in which only a server asked has no calls that could say what became of them. */
  function replaceOrRemove(group: WaitingGroup): void {
    if (group.calls.length === 0) remove(group.sessionId)
    else replace(group)
  }

  function replace(group: WaitingGroup): void {
    groups.value = groups.value.map((other) => (other.sessionId === group.sessionId ? group : other))
  }

  /** Nothing of it is shown any more. */
  function remove(id: string): void {
    groups.value = groups.value.filter(({ sessionId }) => sessionId !== id)
    refuse(id, null)
    if (groups.value.length === 0 && nextCursor.value !== null) void loadMore()
  }

  function refuse(id: string, words: string | null): void {
    const rest = new Map(refusals.value)
    if (words === null) rest.delete(id)
    else rest.set(id, words)
    refusals.value = rest
  }

  /** Whether the server took it. */
  async function decide(id: string, send: () => Promise<unknown>): Promise<boolean> {
    refuse(id, null)
    try {
      await send()
      return true
    } catch (error) {
      const { code, message } = error instanceof RequestError ? error : { code: 'internal', message: String(error) }
      if (code === 'session_not_found') sayGone(id)
      else {
        refuse(id, failureWords({ action: 'decide', error: { code, message, category: 'external', retryable: false } }))
        // It may have been decided elsewhere, or be another by now.
        void read(id)
      }
      return false
    }
  }

  const pending = computed(() => groups.value.flatMap(({ asked, calls, isGone }) => (isGone ? [] : [...calls.filter(({ status }) => status === 'pending'), ...asked])).length)

  return { groups, nextCursor, isRead, isFailed, refusals, pending, load, loadMore, decide, remove }
}

// The groups of the inbox, one for each session; pure.

/** A session in which calls wait, or waited until a moment ago. */
export interface WaitingGroup {
  sessionId: string
  title: string | null
  /** Whose session it is, where it is another's. */
  owner?: { id: string; name: string }
  /** The message that led to the calls, where it is another's. */
  prompt?: string
  since: string
  calls: QueueCall[]
  /** What servers ask in it. */
  asked: ElicitationItem[]
  /** What the calls reflect. */
  seq: Seq
  /** It was deleted, or is no longer the person's. */
  isGone: boolean
}

function groupOf({ sessionId, title, owner, prompt, waitingSince, queue }: WaitingItem): WaitingGroup {
  return { sessionId, title: title ?? null, ...(owner && { owner, prompt: prompt ?? '' }), since: waitingSince, calls: queue.calls, asked: queue.elicitations ?? [], seq: queue.seq, isGone: false }
}

/** With that session in its place: where it stood, or where it belongs by how long it has waited. */
export function withGroup(groups: readonly WaitingGroup[], group: WaitingGroup): WaitingGroup[] {
  const at = groups.findIndex(({ sessionId }) => sessionId === group.sessionId)
  const before = groups[at]
  // An answer that was overtaken knows less than what is shown.
  if (before !== undefined) return before.seq > group.seq ? [...groups] : groups.map((other) => (other === before ? group : other))
  const next = groups.findIndex((other) => order(group, other) < 0)
  return next < 0 ? [...groups, group] : [...groups.slice(0, next), group, ...groups.slice(next)]
}

/** As the server lists them. */
function order(one: WaitingGroup, other: WaitingGroup): number {
  const [a, b] = [Date.parse(one.since), Date.parse(other.since)]
  return a === b ? (one.sessionId < other.sessionId ? -1 : 1) : a - b
}

/** What those events say of these calls: who decided them, and how. */
export function withEvents(calls: readonly QueueCall[], events: readonly StoredEvent[]): QueueCall[] {
  const byId = new Map(calls.map((call) => [call.callId, call]))
  for (const { event, args } of events) {
    const said = args.at(-1)
    if (typeof said !== 'object' || said === null) continue
    const call = byId.get(String((said as JsonObject).callId))
    // How it went on is its session's to tell.
    if (call !== undefined && !(event === 'tool:output' && call.decidedBy !== undefined)) byId.set(call.callId, { ...call, ...changeBy(call, event, said as JsonObject) })
  }
  return [...byId.values()]
}

function changeBy(call: QueueCall, event: string, said: JsonObject): Partial<QueueCall> {
  if (event === 'tool:decided') {
    if (said.scope === 'taken_back') return { status: 'pending' }
    const reason = typeof said.reason === 'string' ? { reason: said.reason } : {}
    const args = said.edited === true && isObject(said.args) ? { args: said.args, originalArgs: call.originalArgs ?? call.args } : {}
    const editedBy = isObject(said.editedBy) ? { editedBy: said.editedBy as unknown as Person } : {}
    return { status: said.approved === true ? 'approved' : 'rejected', decidedBy: said.by as Person, edited: said.edited === true, ...args, ...editedBy, ...reason }
  }
  return event === 'tool:output' ? { status: said.status as CallStatus } : {}
}
