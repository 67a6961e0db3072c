/** What waits in all sessions, as the inbox shows it: read, kept current by news of sessions, and decided over REST. */
import { computed, onBeforeUnmount, ref, shallowRef } from 'vue'
import { useTimeouts } from '@/browser/timeouts'
import { failureWords } from '@/session/store/commandFailure'
import { useWaiting } from '@/stores/waiting'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { SessionItem } from '@/wire/restTypes'
import { groupOf, withEvents, withGroup, type WaitingGroup } from './waitingGroups'

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
