/** The requests about files of a workspace, and where their contents are. */
import { t } from '@/locales'
import { address } from '@/wire/base'
import { csrf, reasonOr, request, RequestError, retried } from '@/wire/request'
import type { Problem } from '@/wire/restTypes'
import { send, type UploadWatch } from '@/wire/upload'
import './texts.en.json'

export interface FileItem {
  name: string
  path: string
  kind: string
  bytes: number
  modifiedAt: string
  version?: string | null
  target?: string | null
}

export interface Folder {
  items: FileItem[]
  total: number
  next?: string | null
}

export interface UploadedFile {
  path: string
  bytes: number
  version: string
}

/** Each name is a part of the address of its own: a separator inside of one is refused. */
function pathOf(session: string, path: string): string {
  const parts = path.split('/').map(encodeURIComponent)
  return `api/sessions/${encodeURIComponent(session)}/files/${parts.join('/')}`
}

/** A file in a folder; a folder whose name is no plain text stands in bash's form, and so does all of the path. */
export function joined(folder: string, name: string): string {
  if (folder === '') return name
  return folder.startsWith("$'") ? `${folder.slice(0, -1)}/${name.replace(/[\\']/g, '\\$&')}'` : `${folder}/${name}`
}

/** Where a browser saves a file. */
export function fileAddress(session: string, path: string): string {
  return address(pathOf(session, path))
}

/** Where it is shown, sealed. The version keeps what was changed meanwhile from being shown as it was. */
export function previewAddress(session: string, { path, version }: FileItem): string {
  return address(`${pathOf(session, path)}?preview=true&v=${encodeURIComponent(version ?? '')}`)
}

export function archiveAddress(session: string, path: string): string {
  const query = path === '' ? '' : `?path=${encodeURIComponent(path)}`
  return address(`api/sessions/${encodeURIComponent(session)}/files-archive${query}`)
}

export const door = {
  list: (id: string, path: string, after: string | null) =>
    request('get', '/api/sessions/{id}/files', { path: { id }, query: { ...(path !== '' && { path }), ...(after !== null && { after }) } }) as Promise<Folder>,
  upload(session: string, path: string, file: File, { overwrite, ...watch }: UploadWatch & { overwrite: boolean }): Promise<UploadedFile> {
    const to = pathOf(session, path)
    return retried(`/${to}`, () => send<UploadedFile>(overwrite ? `${to}?overwrite=true` : to, file, watch, 'PUT'))
  },
  remove(session: string, path: string): Promise<void> {
    const to = pathOf(session, path)
    return retried(`/${to}`, async () => {
      await answered(fetch(address(`${to}?recursive=true`), { method: 'DELETE', credentials: 'same-origin', headers: { 'X-CSRF-Token': csrf() } }))
    })
  },
  /** The beginning of a file. */
  async head(session: string, path: string, bytes: number): Promise<Uint8Array> {
    const to = pathOf(session, path)
    return retried(`/${to}`, async () => {
      const asked = fetch(address(to), { credentials: 'same-origin', headers: { Range: `bytes=0-${bytes - 1}` } })
      const response = await answered(asked, [416])
      return response.status === 416 ? new Uint8Array() : new Uint8Array(await response.arrayBuffer())
    })
  },
}

async function answered(asked: Promise<Response>, alsoTaken: number[] = []): Promise<Response> {
  let response: Response
  try {
    response = await asked
  } catch {
    throw new RequestError(0, {})
  }
  if (response.ok || alsoTaken.includes(response.status)) return response
  const problem = (await response.json().catch(() => ({}))) as Problem
  throw new RequestError(response.status, problem)
}

export function reasonOf(error: unknown): string {
  return reasonOr(error, t('files.noAnswer'))
}
