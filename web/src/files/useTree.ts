/** The folders that are open, and what is in them: read when they are opened, and again when something has happened. */
import { computed, ref, shallowRef, triggerRef } from 'vue'
import { door, reasonOf, type FileItem } from './door'

interface Opened {
  items: FileItem[]
  total: number
  next: string | null
}

/** A line of the tree. */
export interface Row {
  item: FileItem
  level: number
  isOpen: boolean
}

/** What stands for the entries that are not read yet. */
export interface MoreRow {
  folder: string
  level: number
  left: number
}

export type Line = { key: string } & ({ row: Row; more?: undefined } | { row?: undefined; more: MoreRow })

export function useTree(session: () => string | null) {
  const folders = shallowRef(new Map<string, Opened>())
  const isReading = ref(false)
  const problem = ref('')
  let round = 0

  const lines = computed(() => linesOf('', 1))
  const isEmpty = computed(() => folders.value.get('')?.total === 0)

  function linesOf(folder: string, level: number): Line[] {
    const opened = folders.value.get(folder)
    if (!opened) return []
    const found: Line[] = opened.items.flatMap((item) => {
      const isOpen = item.kind === 'folder' && folders.value.has(item.path)
      return [{ key: item.path, row: { item, level, isOpen } }, ...(isOpen ? linesOf(item.path, level + 1) : [])]
    })
    const left = opened.total - opened.items.length
    return opened.next === null ? found : [...found, { key: `${folder}/`, more: { folder, level, left } }]
  }

  async function read(folder: string, after: string | null): Promise<Opened | null> {
    const id = session()
    if (id === null) return null
    const page = await door.list(id, folder, after)
    return { items: page.items, total: page.total, next: page.next ?? null }
  }

  async function doing(what: () => Promise<void>): Promise<void> {
    isReading.value = true
    problem.value = ''
    try {
      await what()
    } catch (error) {
      problem.value = reasonOf(error)
    }
    isReading.value = false
  }

  const open = (folder: string) => doing(async () => {
    const opened = await read(folder, null)
    if (!opened) return
    folders.value.set(folder, opened)
    triggerRef(folders)
  })

  function close(folder: string): void {
    for (const path of [...folders.value.keys()]) {
      if (path === folder || path.startsWith(`${folder}/`)) folders.value.delete(path)
    }
    triggerRef(folders)
  }

  const readMore = (folder: string) => doing(async () => {
    const before = folders.value.get(folder)
    const more = before && (await read(folder, before.next))
    if (!more) return
    folders.value.set(folder, { ...more, items: [...before.items, ...more.items] })
    triggerRef(folders)
  })

  /** All folders that are open, once more; what is gone is closed. */
  const refresh = () => doing(async () => {
    const mine = (round += 1)
    const fresh = new Map<string, Opened>()
    for (const folder of ['', ...[...folders.value.keys()].filter((path) => path !== '')]) {
      const opened = await read(folder, null).catch((error: unknown) => {
        if (folder === '') throw error
        return null
      })
      if (mine !== round) return
      if (opened) fresh.set(folder, opened)
    }
    folders.value = fresh
  })

  function clear(): void {
    round += 1
    problem.value = ''
    folders.value = new Map()
  }

  return { lines, isEmpty, isReading, problem, open, close, readMore, refresh, clear }
}
