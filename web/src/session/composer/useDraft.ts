/** The text that is being written: the browser keeps it per person and session, and what was refused comes back to it. */
import { computed, ref, watch } from 'vue'
import { recall, remember } from '@/browser/storage'
import { i18n } from '@/locales'
import { reasonOf } from '@/session/store/commands'
import { useSession } from '@/session/store/session'
import { addContext, contextsOf, draftKey, dropContext } from '@/stores/viewContexts'
import { announce } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import type { Attachment } from '@/wire/types'

/** Whether the draft is that of a session that was new until now, and is stored under its name since. */
export function gotItsName(before: string | undefined, session: { id: string | null; bornId: string | null }): boolean {
  return before?.endsWith('.new') === true && session.id !== null && session.id === session.bornId
}

export function useDraft() {
  const session = useSession()
  const text = ref('')
  /** Why the text in the field was not taken. */
  const refusal = ref('')
  const files = useAttachments()
  const hasText = computed(() => text.value.trim() !== '')
  /** Whether there is anything to send. */
  const hasContent = computed(() => hasText.value || files.chips.value.length > 0)
  const canSend = computed(() => (hasText.value || files.ready.value.length > 0) && !files.isUploading.value)
  const key = computed(() => draftKey(session))
  /** What views let the model know with it. */
  const contexts = computed(() => contextsOf(key.value))

  watch(
    key,
    (now, before) => {
      // A new session that got its name keeps the text, as does one whose person is known at last; any other change
      // of session brings its own draft.
      const isNamed = gotItsName(before, session)
      const isKnown = before?.startsWith('draft..')
      const isSame = before !== undefined && (isNamed || isKnown === true) && hasContent.value
      files.moveTo(now, isSame)
      if (isSame) {
        remember(before, null)
        remember(now, text.value || null)
      } else {
        text.value = recall(now) ?? ''
        refusal.value = ''
      }
    },
    { immediate: true },
  )
  watch(text, (value) => remember(key.value, value || null))
  watch(
    () => session.unsent.find((message) => message.refused),
    (message) => {
      // It comes back to be changed, but never into what is being written; until then the transcript keeps it.
      if (!message?.refused || hasContent.value) return
      text.value = message.text
      files.bring(message.attachments ?? [])
      for (const context of message.viewContexts ?? []) addContext(key.value, context)
      refusal.value = reasonOf(message.refused)
      void session.unsend(message.clientMessageId)
    },
    { immediate: true },
  )

  function send(): void {
    const error = session.send(text.value.trim(), files.ready.value, contexts.value)
    refusal.value = error ? reasonOf(error) : ''
    if (error) return
    text.value = ''
    files.clear()
    files.keep()
    dropContext(key.value)
  }

  /** What was sent comes back before what is being written. */
  function bring(words: string, attachments: readonly Attachment[] = []): void {
    files.bring(attachments)
    text.value = hasText.value ? `${words}\n${text.value}` : words
  }

  return { text, files, contexts, canSend, refusal, key, send, bring }
}

// The files of the draft: each is uploaded at once, one after the other, and kept with the draft.

/** The server's limit of a message. */
const MOST = 10

export interface Chip {
  key: number
  name: string
  /** From 0 to 1. */
  progress: number
  /** A picture of this page's own, until it is shown from the server. */
  preview: string | null
  /** Once it is uploaded. */
  attachment: Attachment | null
  /** Why it is not. */
  error: string
}

function useAttachments() {
  const { t } = i18n.global
  const session = useSession()
  const chips = ref<Chip[]>([])
  const aborts = new Map<number, AbortController>()
  let place = ''
  let next = 0
  let uploading = Promise.resolve()

  const ready = computed(() => chips.value.flatMap(({ attachment }) => attachment ?? []))
  const isUploading = computed(() => chips.value.some(({ attachment, error }) => !attachment && !error))

  function add(files: readonly File[]): void {
    const room = Math.max(0, MOST - chips.value.length)
    if (files.length > room) announce(t('attach.tooMany', { n: MOST }))
    for (const file of files.slice(0, room)) {
      const preview = file.type.startsWith('image/') ? URL.createObjectURL(file) : null
      const chip: Chip = { key: (next += 1), name: file.name, progress: 0, preview, attachment: null, error: '' }
      chips.value.push(chip)
      uploading = uploading.then(() => send(chip.key, file))
    }
  }

  async function send(key: number, file: File): Promise<void> {
    if (!find(key)) return
    const abort = new AbortController()
    aborts.set(key, abort)
    try {
      const watch = { signal: abort.signal, onProgress: (part: number) => change(key, { progress: part }) }
      change(key, { attachment: await session.attach(file, watch), progress: 1 })
      announce(t('attach.ready', { name: file.name }))
    } catch (error) {
      const reason = wordsOf(error)
      if (find(key)) announce(t('attach.failed', { name: file.name, reason }))
      change(key, { error: reason })
    }
    aborts.delete(key)
    keep()
  }

  function find(key: number): Chip | undefined {
    return chips.value.find((chip) => chip.key === key)
  }

  function change(key: number, what: Partial<Chip>): void {
    const chip = find(key)
    if (chip) Object.assign(chip, what)
  }

  function remove(key: number): void {
    aborts.get(key)?.abort()
    release(chips.value.filter((chip) => chip.key === key))
    chips.value = chips.value.filter((chip) => chip.key !== key)
    keep()
  }

  /** What was sent, or is another draft's. */
  function clear(): void {
    for (const abort of aborts.values()) abort.abort()
    release(chips.value)
    chips.value = []
  }

  function bring(attachments: readonly Attachment[]): void {
    const known = new Set(ready.value.map(({ id }) => id))
    const missing = attachments.filter(({ id }) => !known.has(id))
    chips.value.push(...missing.map((attachment) => ({ key: (next += 1), name: attachment.name, progress: 1, preview: null, attachment, error: '' })))
    keep()
  }

  /** Goes on under another name, with what is there or with what was kept under it. */
  function moveTo(key: string, isSame: boolean): void {
    const before = place
    place = `${key}.files`
    if (isSame) {
      remember(before, null)
      keep()
      return
    }
    clear()
    bring(recalled(place))
  }

  function keep(): void {
    remember(place, ready.value.length > 0 ? JSON.stringify(ready.value) : null)
  }

  return { chips, ready, isUploading, add, remove, clear, keep, bring, moveTo }
}

function release(chips: readonly Chip[]): void {
  for (const { preview } of chips) if (preview) URL.revokeObjectURL(preview)
}

function recalled(place: string): Attachment[] {
  try {
    return JSON.parse(recall(place) ?? '[]') as Attachment[]
  } catch {
    return []
  }
}

function wordsOf(error: unknown): string {
  const { code, message } = error instanceof RequestError ? error : { code: 'offline', message: '' }
  // What the server says of a file names its own limits.
  return code === 'too_large' ? message : reasonOf({ code, message } as Parameters<typeof reasonOf>[0])
}
