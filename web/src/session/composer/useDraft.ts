/** The text that is being written: the browser keeps it per person and session, and what was refused comes back to it. */
import { computed, ref, watch } from 'vue'
import { recall, remember } from '@/browser/storage'
import { reasonOf } from '@/session/store/commandFailure'
import { useSession } from '@/session/store/session'

export function useDraft() {
  const session = useSession()
  const text = ref('')
  /** Why the text in the field was not taken. */
  const refusal = ref('')
  const hasText = computed(() => text.value.trim() !== '')
  const key = computed(() => `draft.${session.typist}.${session.id ?? 'new'}`)

  watch(
    key,
    (now, before) => {
      // A new session that got its name keeps the text, as does one whose person is known at last; any other change
      // of session brings its own draft.
      const isNamed = before?.endsWith('.new') && session.id !== null && session.id === session.bornId
      const isKnown = before?.startsWith('draft..')
      if (before && (isNamed || isKnown) && hasText.value) {
        remember(before, null)
        remember(now, text.value)
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
      if (!message?.refused || hasText.value) return
      text.value = message.text
      refusal.value = reasonOf(message.refused)
      void session.unsend(message.clientMessageId)
    },
    { immediate: true },
  )

  function send(): void {
    const error = session.send(text.value.trim())
    refusal.value = error ? reasonOf(error) : ''
    if (!error) text.value = ''
  }

  /** What was sent comes back before what is being written. */
  function bring(words: string): void {
    text.value = hasText.value ? `${words}\n${text.value}` : words
  }

  return { text, hasText, refusal, key, send, bring }
}
