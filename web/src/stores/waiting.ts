/**
 * How many calls wait for the person in all sessions, as the server counts them. The news of sessions say when to ask
 * again; they are passed on to whatever shows the calls themselves.
 */
import { defineStore } from 'pinia'
import { ref } from 'vue'
import { rest } from '@/wire/rest'
import type { SessionItem } from '@/wire/restTypes'

export interface WaitingListener {
  /** Something about a session is another; calls may wait in it, or not any more. */
  changed(item: Pick<SessionItem, 'id' | 'waiting'>): void
  /** A session is gone. */
  removed(id: string): void
  /** Connected, or news may be missing. */
  stale(): void
}

export const useWaiting = defineStore('waiting', () => {
  const calls = ref(0)
  const sessions = ref(0)
  const lastDecidedAt = ref<string | null>(null)
  /** Calls that wait in each session of which there was news. */
  const known = new Map<string, number>()
  const listeners = new Set<WaitingListener>()
  let asked = 0
  let isFollowing = false
  let hasNews = false

  async function refresh(): Promise<void> {
    const turn = ++asked
    try {
      const counted = await rest.approvalCount()
      // An answer that was overtaken knows less, and one to whoever read before is nobody's.
      if (turn !== asked) return
      calls.value = counted.calls
      sessions.value = counted.sessions
      lastDecidedAt.value = counted.lastDecidedAt ?? null
    } catch {
      // What was counted last stays, until the next connection asks again.
    }
  }

  /**
   * Asks at once, and once more for all the news that came meanwhile. It waits for no timer: a tab in the background has
   * its timers a second late.
   */
  async function follow(): Promise<void> {
    hasNews = true
    if (isFollowing) return
    isFollowing = true
    while (hasNews) {
      hasNews = false
      await refresh()
    }
    isFollowing = false
  }

  function take(item: SessionItem): void {
    if (known.get(item.id) !== item.waiting) {
      known.set(item.id, item.waiting)
      void follow()
    }
    for (const listener of listeners) listener.changed(item)
  }

  /** In another's session something waits for the person, or not any more. */
  function ask(id: string): void {
    void follow()
    for (const listener of listeners) listener.changed({ id, waiting: 1 })
  }

  function drop(id: string): void {
    known.delete(id)
    void follow()
    for (const listener of listeners) listener.removed(id)
  }

  function stale(): void {
    known.clear()
    void refresh()
    for (const listener of listeners) listener.stale()
  }

  /** Gives what ends it. */
  function listen(listener: WaitingListener): () => void {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  /** Somebody else reads from now on. */
  function reset(): void {
    asked += 1
    known.clear()
    calls.value = 0
    sessions.value = 0
    lastDecidedAt.value = null
  }

  return { calls, sessions, lastDecidedAt, refresh, take, ask, drop, stale, listen, reset }
})
