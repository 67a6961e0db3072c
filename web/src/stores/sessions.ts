/** The list in the rail. Deleting is undoable for ten seconds because it is only told to the server afterwards. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { rest } from '@/wire/rest'
import type { SessionItem } from '@/wire/restTypes'

export const UNDO_MS = 10_000

interface Leaving {
  item: SessionItem
  timer: ReturnType<typeof setTimeout>
}

export const useSessions = defineStore('sessions', () => {
  const items = shallowRef<SessionItem[]>([])
  const nextCursor = ref<string | null>(null)
  const leaving = shallowRef<Leaving | null>(null)
  const isFailed = ref(false)

  const removed = new Set<string>()
  /** The session whose own socket tells this page sooner what it does. */
  let own: string | null = null
  let asked = 0
  /** Whose list it is; an answer to whoever read before is nobody's. */
  let readers = 0

  const shown = computed(() => items.value.filter((item) => item.id !== leaving.value?.item.id))

  async function refresh(): Promise<void> {
    const turn = ++asked
    try {
      const page = await rest.sessions(null)
      // What waits is shown first, however long ago it began to wait.
      const waiting = !page.nextCursor ? [] : (await rest.sessions(null, 'waiting')).items
      // An answer that was overtaken knows less than what is shown.
      if (turn !== asked) return
      const known = new Map(items.value.map((item) => [item.id, item]))
      const fresh = new Set(page.items.map((item) => item.id))
      const hasOlder = items.value.length > page.items.length && nextCursor.value !== null
      const oldest = page.items[page.items.length - 1]?.updatedAt ?? ''
      const older = hasOlder ? items.value.filter((item) => !fresh.has(item.id) && item.updatedAt < oldest) : []
      const more = new Map([...older, ...waiting.filter((item) => !fresh.has(item.id))].map((item) => [item.id, item]))
      items.value = [...page.items, ...inOrder([...more.values()])].map((item) => newer(known.get(item.id), item))
      if (!hasOlder) nextCursor.value = page.nextCursor ?? null
      isFailed.value = false
    } catch {
      if (turn === asked) isFailed.value = true
    }
  }

  async function loadMore(): Promise<void> {
    if (nextCursor.value === null) return
    const reader = readers
    const page = await rest.sessions(nextCursor.value)
    if (reader !== readers) return
    const known = new Set(items.value.map((item) => item.id))
    items.value = [...items.value, ...page.items.filter((item) => !known.has(item.id))]
    nextCursor.value = page.nextCursor ?? null
  }

  /** What a socket of this page already knows need not be asked for. */
  function patch(id: string, change: Partial<SessionItem>): void {
    items.value = items.value.map((item) => (item.id === id ? { ...item, ...change } : item))
  }

  /** Something happened in a session; a new one is there before the server lists it. */
  function touch(id: string, change: Omit<SessionItem, 'id' | 'createdAt' | 'title' | 'waiting' | 'version'> & { title?: string }): void {
    if (removed.has(id)) return
    if (items.value.some((item) => item.id === id)) return patch(id, change)
    items.value = [{ id, createdAt: change.updatedAt, title: null, waiting: 0, version: 0, ...change }, ...items.value]
  }

  /** The server tells of a change, made by whomever. */
  function take(item: SessionItem): void {
    if (removed.has(item.id)) return
    const known = items.value.find(({ id }) => id === item.id)
    if (!known) {
      items.value = inOrder([item, ...items.value])
      return
    }
    patch(item.id, item.id === own ? { ...item, state: known.state, waiting: known.waiting } : newer(known, item))
  }

  /** The server tells that it was deleted, by whomever. */
  function drop(id: string): void {
    items.value = items.value.filter((item) => item.id !== id)
    removed.delete(id)
  }

  /** Whose own socket is open here. */
  function follow(id: string | null): void {
    own = id
  }

  async function rename(id: string, title: string): Promise<void> {
    await rest.renameSession(id, title)
    patch(id, { title })
  }

  function remove(item: SessionItem): void {
    void finishRemoval(false)
    leaving.value = { item, timer: setTimeout(() => void finishRemoval(false), UNDO_MS) }
  }

  function undoRemoval(): void {
    if (leaving.value) clearTimeout(leaving.value.timer)
    leaving.value = null
  }

  /** `keepalive`: the tab closes, and the request has to outlive it. Never rejects. */
  async function finishRemoval(keepalive: boolean): Promise<void> {
    const pending = leaving.value
    if (!pending) return
    clearTimeout(pending.timer)
    items.value = items.value.filter((item) => item.id !== pending.item.id)
    removed.add(pending.item.id)
    leaving.value = null
    const reader = readers
    try {
      await rest.deleteSession(pending.item.id, keepalive)
    } catch {
      if (reader !== readers) return
      removed.delete(pending.item.id)
      await refresh()
    }
  }

  /** Somebody else reads from now on: nothing of the list is theirs. */
  function reset(): void {
    undoRemoval()
    readers += 1
    asked += 1
    items.value = []
    nextCursor.value = null
    isFailed.value = false
    removed.clear()
  }

  return { items, shown, nextCursor, leaving, isFailed, refresh, loadMore, patch, touch, take, drop, follow, rename, remove, undoRemoval, finishRemoval, reset }
})

/** Of two items of one session the one that the server made later. */
function newer(known: SessionItem | undefined, item: SessionItem): SessionItem {
  return known && known.version > item.version ? known : item
}

/** As the server lists them. */
function inOrder(items: readonly SessionItem[]): SessionItem[] {
  return [...items].sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0))
}
