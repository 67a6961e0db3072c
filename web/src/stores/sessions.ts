/** The list in the rail. What is deleted is off it at once; the server deletes it ten seconds later, unless it is undone. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { rest } from '@/wire/rest'
import type { SessionItem } from '@/wire/restTypes'

export const UNDO_MS = 10_000

interface Leaving {
  items: readonly SessionItem[]
  timer: ReturnType<typeof setTimeout>
}

/** Which sessions the list shows. */
export interface ListFilter {
  isArchived: boolean
  tag: string | null
}

export const useSessions = defineStore('sessions', () => {
  const items = shallowRef<SessionItem[]>([])
  const nextCursor = ref<string | null>(null)
  const leaving = shallowRef<Leaving | null>(null)
  const isFailed = ref(false)
  const filter = shallowRef<ListFilter>({ isArchived: false, tag: null })

  const removed = new Set<string>()
  /** The session whose own socket tells this page sooner what it does. */
  let own: string | null = null
  let asked = 0
  /** The deletion that is on its way to the server. */
  let telling: Promise<unknown> = Promise.resolve()
  /** Whose list it is; an answer to whoever read before is nobody's. */
  let readers = 0

  const shown = items
  /** The person's words, as far as the list knows them. */
  const tags = computed(() => [...new Set([...items.value.flatMap((item) => item.tags), ...(filter.value.tag ? [filter.value.tag] : [])])].sort())

  async function refresh(): Promise<void> {
    const turn = ++asked
    try {
      const page = await rest.sessions(null, filter.value)
      // What waits is shown first, however long ago it began to wait.
      const waiting = !page.nextCursor ? [] : (await rest.sessions(null, filter.value, 'waiting')).items
      // An answer that was overtaken knows less than what is shown.
      if (turn !== asked) return
      const known = new Map(items.value.map((item) => [item.id, item]))
      const listed = page.items.filter((item) => !removed.has(item.id))
      const fresh = new Set(page.items.map((item) => item.id))
      const hasOlder = items.value.length > page.items.length && nextCursor.value !== null
      const oldest = page.items[page.items.length - 1]
      const older = hasOlder && oldest ? items.value.filter((item) => !fresh.has(item.id) && order(oldest, item) < 0) : []
      const more = new Map([...older, ...waiting.filter((item) => !fresh.has(item.id))].map((item) => [item.id, item]))
      items.value = [...listed, ...inOrder([...more.values()])].map((item) => newer(known.get(item.id), item))
      if (!hasOlder) nextCursor.value = page.nextCursor ?? null
      isFailed.value = false
    } catch {
      if (turn === asked) isFailed.value = true
    }
  }

  async function loadMore(): Promise<void> {
    if (nextCursor.value === null) return
    const reader = readers
    const page = await rest.sessions(nextCursor.value, filter.value)
    if (reader !== readers) return
    const known = new Set(items.value.map((item) => item.id))
    items.value = [...items.value, ...page.items.filter((item) => !known.has(item.id) && !removed.has(item.id))]
    nextCursor.value = page.nextCursor ?? null
  }

  /** What a socket of this page already knows need not be asked for. */
  function patch(id: string, change: Partial<SessionItem>): void {
    items.value = items.value.map((item) => (item.id === id ? { ...item, ...change } : item))
  }

  /** Something happened in a session; a new one is there before the server lists it. */
  function touch(id: string, change: Pick<SessionItem, 'state' | 'updatedAt'> & { title?: string }): void {
    if (removed.has(id)) return
    if (items.value.some((item) => item.id === id)) return patch(id, change)
    // It may be an old one that this list does not show.
    if (filter.value.isArchived || filter.value.tag !== null) return
    const born = { id, createdAt: change.updatedAt, title: null, waiting: 0, version: 0, isPinned: false, isArchived: false, tags: [], ...change }
    items.value = inOrder([born, ...items.value])
  }

  /** The server tells of a change, made by whomever. */
  function take(item: SessionItem): void {
    if (removed.has(item.id)) return
    const known = items.value.find(({ id }) => id === item.id)
    if (known && known.version > item.version) return
    if (!fits(item)) {
      items.value = items.value.filter(({ id }) => id !== item.id)
      return
    }
    if (!known) {
      items.value = inOrder([item, ...items.value])
      return
    }
    patch(item.id, item.id === own ? { ...item, state: known.state, waiting: known.waiting } : item)
    if (known.isPinned !== item.isPinned) items.value = inOrder(items.value)
  }

  function fits(item: SessionItem): boolean {
    const { isArchived, tag } = filter.value
    return item.isArchived === isArchived && (tag === null || item.tags.includes(tag))
  }

  /** Shows other sessions. */
  async function choose(change: Partial<ListFilter>): Promise<void> {
    filter.value = { ...filter.value, ...change }
    items.value = []
    nextCursor.value = null
    await refresh()
  }

  /** The server tells that it was deleted, by whomever. */
  function drop(id: string): void {
    items.value = items.value.filter((item) => item.id !== id)
  }

  /** Whose own socket is open here. */
  function follow(id: string | null): void {
    own = id
  }

  async function rename(id: string, title: string): Promise<void> {
    await rest.renameSession(id, title)
    patch(id, { title })
  }

  /** What a person keeps about a session; shown when the server has it. */
  async function mark(id: string, change: { isPinned?: boolean; isArchived?: boolean; tags?: string[] }): Promise<void> {
    take(await rest.changeSession(id, change))
  }

  /** The same for several; what becomes of each is told by the server. */
  async function markAll(ids: readonly string[], action: 'archive' | 'unarchive' | 'tag', tag?: string): Promise<void> {
    await rest.changeSessions([...ids], action, tag)
    await refresh()
  }

  /** Whether the server took it. Until the time to undo is over, nothing of it is deleted. */
  async function remove(gone: readonly SessionItem[]): Promise<boolean> {
    forgetRemoval()
    const ids = gone.map(({ id }) => id)
    for (const id of ids) removed.add(id)
    items.value = items.value.filter(({ id }) => !removed.has(id))
    leaving.value = { items: gone, timer: setTimeout(forgetRemoval, UNDO_MS) }
    try {
      telling = rest.changeSessions(ids, 'delete')
      await telling
      return true
    } catch {
      forgetRemoval()
      for (const id of ids) removed.delete(id)
      await refresh()
      return false
    }
  }

  /** Too late, or without an answer, the list says what is left. */
  async function undoRemoval(): Promise<void> {
    const back = leaving.value?.items ?? []
    forgetRemoval()
    for (const { id } of back) removed.delete(id)
    items.value = inOrder([...back, ...items.value])
    const reader = readers
    try {
      const { notFound } = await rest.changeSessions(back.map(({ id }) => id), 'restore')
      if (reader !== readers || notFound.length === 0) return
    } catch {
      if (reader !== readers) return
    }
    items.value = items.value.filter((item) => !back.includes(item))
    await refresh()
  }

  /** Waits until the server knows what was deleted. */
  async function told(): Promise<void> {
    await telling.catch(() => {})
  }

  function forgetRemoval(): void {
    if (leaving.value) clearTimeout(leaving.value.timer)
    leaving.value = null
  }

  /** Somebody else reads from now on: nothing of the list is theirs. */
  function reset(): void {
    forgetRemoval()
    readers += 1
    asked += 1
    items.value = []
    nextCursor.value = null
    isFailed.value = false
    filter.value = { isArchived: false, tag: null }
    removed.clear()
  }

  return { items, shown, tags, filter, nextCursor, leaving, isFailed, refresh, loadMore, choose, patch, touch, take, drop, follow, rename, mark, markAll, remove, undoRemoval, told, reset }
})

/** Of two items of one session the one that the server made later. */
function newer(known: SessionItem | undefined, item: SessionItem): SessionItem {
  return known && known.version > item.version ? known : item
}

/** As the server lists them. */
function inOrder(items: readonly SessionItem[]): SessionItem[] {
  return [...items].sort(order)
}

function order(a: SessionItem, b: SessionItem): number {
  if (a.isPinned !== b.isPinned) return a.isPinned ? -1 : 1
  return a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0
}
