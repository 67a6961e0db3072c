/** The requests about what changed in a workspace. */
import { t } from '@/locales'
import { reasonOr, request } from '@/wire/request'
import './history.en.json'

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
