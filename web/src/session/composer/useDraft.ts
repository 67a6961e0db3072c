/** The text that is being written: the browser keeps it per person and session, and what was refused comes back to it. */
import { computed, ref, watch } from 'vue'
import { recall, remember } from '@/browser/storage'
import { reasonOf } from '@/session/store/commandFailure'
import { useSession } from '@/session/store/session'
import { addContext, contextsOf, draftKey, dropContext } from '@/stores/viewContexts'
import type { Attachment } from '@/wire/types'
import { useAttachments } from './useAttachments'

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
