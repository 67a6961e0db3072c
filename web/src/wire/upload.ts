/** Sends files: attachments of a session, and what is imported. Only `XMLHttpRequest` says how much of it has been sent. */
import { address } from './base'
import { csrf, RequestError, retried } from './request'
import type { ImportDone, Problem } from './restTypes'
import type { Attachment } from './types'

export interface UploadWatch {
  /** From 0 to 1. */
  onProgress: (part: number) => void
  signal: AbortSignal
}

export function upload(session: string, file: File, watch: UploadWatch): Promise<Attachment> {
  const path = `/api/sessions/${encodeURIComponent(session)}/attachments`
  return retried(path, () => send<Attachment>(`${path.slice(1)}?name=${encodeURIComponent(file.name)}`, file, watch))
}

/** Where the content of an attachment is. */
export function attachmentAddress(session: string, attachment: string): string {
  return address(`api/sessions/${encodeURIComponent(session)}/attachments/${encodeURIComponent(attachment)}`)
}

/** A session as a file. */
export function exportAddress(session: string, format: 'md' | 'html' | 'json'): string {
  return address(`api/sessions/${encodeURIComponent(session)}/export?format=${format}`)
}

/** The decisions of a session as one signed document. */
export function decisionsAddress(session: string): string {
  return address(`api/sessions/${encodeURIComponent(session)}/decisions`)
}

/** A session as one page that a browser shows, and prints whole: the page itself holds only what is looked at. */
export function printAddress(session: string): string {
  return address(`api/sessions/${encodeURIComponent(session)}/export?format=html&show=true`)
}

/** Sends a file with conversations; what became of each. */
export function importFile(file: File, watch: UploadWatch): Promise<ImportDone> {
  return send<ImportDone>('api/sessions/import', file, watch)
}

export function send<T>(path: string, file: File, { onProgress, signal }: UploadWatch, method = 'POST'): Promise<T> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest()
    sending.open(method, address(path))
    sending.setRequestHeader('Accept', 'application/json')
    sending.setRequestHeader('Content-Type', 'application/octet-stream')
    sending.setRequestHeader('X-CSRF-Token', csrf())
    sending.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0)
    sending.onload = () => {
      const isTaken = sending.status >= 200 && sending.status < 300
      if (isTaken) resolve(JSON.parse(sending.responseText) as T)
      else reject(new RequestError(sending.status, problemOf(sending.responseText)))
    }
    sending.onerror = () => reject(new RequestError(0, {}))
    sending.onabort = () => reject(new RequestError(0, {}))
    signal.addEventListener('abort', () => sending.abort())
    sending.send(file)
  })
}

function problemOf(text: string): Problem {
  try {
    return JSON.parse(text) as Problem
  } catch {
    return {}
  }
}
