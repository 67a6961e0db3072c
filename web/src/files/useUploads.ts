/** Files on their way into the workspace, one after the other. What has a name that is taken waits for a word. */
import { ref } from 'vue'
import { t } from '@/locales'
import { announce } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import { door, joined, reasonOf } from './door'
import './texts.en.json'

export interface Sending {
  key: number
  name: string
  /** From 0 to 1. */
  progress: number
  /** Why it is not there. */
  error: string
  /** A file of its name is there. */
  isTaken: boolean
}

export function useUploads(session: () => string | null, onDone: () => void) {
  const sending = ref<Sending[]>([])
  const held = new Map<number, { file: File; path: string; abort: AbortController }>()
  let next = 0
  let queue = Promise.resolve()

  function add(folder: string, files: readonly File[]): void {
    for (const file of files) {
      const key = (next += 1)
      sending.value.push({ key, name: file.name, progress: 0, error: '', isTaken: false })
      held.set(key, { file, path: joined(folder, file.name), abort: new AbortController() })
      queue = queue.then(() => send(key, false))
    }
  }

  async function send(key: number, overwrite: boolean): Promise<void> {
    const [id, what] = [session(), held.get(key)]
    if (id === null || !what) return
    const { file, path, abort } = what
    try {
      const onProgress = (part: number) => change(key, { progress: part })
      await door.upload(id, path, file, { signal: abort.signal, onProgress, overwrite })
      dismiss(key)
      announce(t('files.uploaded', { name: file.name }))
      onDone()
    } catch (error) {
      const isTaken = error instanceof RequestError && error.code === 'file_exists'
      if (!held.has(key)) return
      const reason = reasonOf(error)
      change(key, { error: reason, isTaken })
      announce(t('files.uploadFailed', { name: file.name, reason }))
    }
  }

  function change(key: number, what: Partial<Sending>): void {
    const found = sending.value.find((one) => one.key === key)
    if (found) Object.assign(found, what)
  }

  function replace(key: number): void {
    change(key, { error: '', isTaken: false, progress: 0 })
    queue = queue.then(() => send(key, true))
  }

  function dismiss(key: number): void {
    held.get(key)?.abort.abort()
    held.delete(key)
    sending.value = sending.value.filter((one) => one.key !== key)
  }

  return { sending, add, replace, dismiss }
}
