/** The list in the rail. Deleting is undoable for ten seconds because it is only told to the server afterwards. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { rest, type SessionItem } from '@/wire/rest'

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

  const shown = computed(() => items.value.filter((item) => item.id !== leaving.value?.item.id))

  async function refresh(): Promise<void> {
    try {
      const page = await rest.sessions(null)
      const fresh = new Set(page.items.map((item) => item.id))
      const hasOlder = items.value.length > page.items.length && nextCursor.value !== null
      const oldest = page.items[page.items.length - 1]?.updatedAt ?? ''
      const older = hasOlder ? items.value.filter((item) => !fresh.has(item.id) && item.updatedAt < oldest) : []
      items.value = [...page.items, ...older]
      if (!hasOlder) nextCursor.value = page.nextCursor
      isFailed.value = false
    } catch {
      isFailed.value = true
    }
  }

  async function loadMore(): Promise<void> {
    if (nextCursor.value === null) return
    const page = await rest.sessions(nextCursor.value)
    const known = new Set(items.value.map((item) => item.id))
    items.value = [...items.value, ...page.items.filter((item) => !known.has(item.id))]
    nextCursor.value = page.nextCursor
  }

  /** What a socket of this page already knows need not be asked for. */
  function patch(id: string, change: Partial<SessionItem>): void {
    items.value = items.value.map((item) => (item.id === id ? { ...item, ...change } : item))
  }

  async function rename(id: string, title: string): Promise<void> {
    await rest.renameSession(id, title)
    patch(id, { title })
  }

  function remove(item: SessionItem): void {
    finishRemoval(false)
    leaving.value = { item, timer: setTimeout(() => finishRemoval(false), UNDO_MS) }
  }

  function undoRemoval(): void {
    if (leaving.value) clearTimeout(leaving.value.timer)
    leaving.value = null
  }

  /** `keepalive`: the tab closes, and the request has to outlive it. */
  function finishRemoval(keepalive: boolean): void {
    const pending = leaving.value
    if (!pending) return
    clearTimeout(pending.timer)
    items.value = items.value.filter((item) => item.id !== pending.item.id)
    leaving.value = null
    rest.deleteSession(pending.item.id, keepalive).catch(() => refresh())
  }

  return { items, shown, nextCursor, leaving, isFailed, refresh, loadMore, patch, rename, remove, undoRemoval, finishRemoval }
})
