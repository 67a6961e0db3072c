/** The history of the open session's files, read once for all that shows it, and again when something has happened. */
import { effectScope, ref, shallowRef, watch } from 'vue'
import { t } from '@/locales'
import { useSession } from '@/session/store/session'
import { reasonOr, request } from '@/wire/request'
import './history.en.json'

/** What happens in the conversation comes in bursts. */
const REFRESH_MS = 300

/** How often somebody put files back here: whatever shows files reads them again. */
export const undoCount = ref(0)
const changes = shallowRef<Change[]>([])
const problem = ref('')
const isRead = ref(false)
let isFollowing = false
let asked = 0

/** Reads it again; what is shown stays until it is there. */
export async function refreshChanges(): Promise<void> {
  const id = useSession().id
  const turn = ++asked
  if (id === null) return
  try {
    const items = await door.list(id)
    if (turn !== asked) return
    changes.value = items
    problem.value = ''
    isRead.value = true
  } catch (error) {
    if (turn === asked) problem.value = reasonOf(error)
  }
}

export function useChanges() {
  if (!isFollowing) follow()
  return { changes, problem, isRead, refresh: refreshChanges }
}

function follow(): void {
  isFollowing = true
  const session = useSession()
  let timer: ReturnType<typeof setTimeout> | undefined
  // As long as the page: whoever asks first does not own it.
  effectScope(true).run(() => {
    watch(() => session.id, () => {
      changes.value = []
      isRead.value = false
      void refreshChanges()
    }, { immediate: true })
    watch(() => session.conversation.seq, () => {
      clearTimeout(timer)
      timer = setTimeout(() => void refreshChanges(), REFRESH_MS)
    })
  })
}

/** Whether a step changed anything. */
export function hasChanged(change: Change): boolean {
  return filesOf(change) + change.folders > 0
}

/** How much a step changed, in words. Folders are told only where no file was changed: most are made for a file. */
export function changedWords(change: Change): string {
  const n = filesOf(change)
  return n > 0 ? t('fileHistory.changed', { n }) : t('fileHistory.changedFolders', { n: change.folders })
}

function filesOf({ created, modified, deleted }: Change): number {
  return created + modified + deleted
}

/** Whether a path is a folder, and nothing else before. */
export function isFolder({ before, after }: { before?: ChangedEntry | null; after?: ChangedEntry | null }): boolean {
  return [before, after].every((entry) => !entry || entry.kind === 'folder')
}

// The requests about changes in a workspace.

/** One step of the history. */
export interface Change {
  number: number
  at: string
  calls: string[]
  people: string[]
  undoes?: number | null
  isLate: boolean
  created: number
  modified: number
  deleted: number
  /** Counted apart from files and links. */
  folders: number
}

export interface ChangedEntry {
  kind: string
  mode: string
  bytes: number
  target?: string | null
  hasContent: boolean
}

export interface ChangedPath {
  path: string
  before?: ChangedEntry | null
  after?: ChangedEntry | null
}

export type Details = Change & { files: ChangedPath[]; total: number }

export interface Content extends ChangedEntry {
  text?: string | null
}

export interface ChangedFile {
  path: string
  before?: Content | null
  after?: Content | null
}

export interface Plan {
  number: number
  digest: string
  files: (ChangedPath & { isPossible: boolean })[]
  total: number
}

export interface Undone {
  number?: number | null
  restored: number
  unrestored: { path: string; reason: string }[]
}

export const door = {
  list: async (id: string) => ((await request('get', '/api/sessions/{id}/changes', { path: { id } })) as { items: Change[] }).items,
  details: (id: string, number: number) => request('get', '/api/sessions/{id}/changes/{number}', { path: { id, number } }) as Promise<Details>,
  file: (id: string, number: number, path: string) =>
    request('get', '/api/sessions/{id}/changes/{number}/file', { path: { id, number }, query: { path } }) as Promise<ChangedFile>,
  plan: (id: string, number: number) => request('get', '/api/sessions/{id}/changes/{number}/undo', { path: { id, number } }) as Promise<Plan>,
  undo: (id: string, number: number, digest: string) =>
    request('post', '/api/sessions/{id}/changes/{number}/undo', { path: { id, number }, body: { digest } }) as Promise<Undone>,
}

export function reasonOf(error: unknown): string {
  return reasonOr(error, t('fileHistory.noAnswer'))
}
