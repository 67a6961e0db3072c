/** What a person who cannot see the page is told: whole sentences, once each. */
import { watch } from 'vue'
import { t } from '@/locales'
import { turnFailureWords } from '@/session/entries/EntryNote.vue'
import type { useSession } from '@/session/store/session'
import { reading } from '@/stores/appearance'
import { alertAloud, announce } from '@/ui/announcer'

/** The calls of one batch arrive one by one; they are one sentence. */
const BATCH_MS = 150

export function announceSession(session: ReturnType<typeof useSession>): void {
  const told = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined

  watch(
    () => session.pending,
    (pending) => {
      if (pending.every((call) => told.has(call.callId))) return
      for (const call of pending) told.add(call.callId)
      clearTimeout(timer)
      timer = setTimeout(() => alertAloud(t('say.waiting', { n: session.pending.length })), BATCH_MS)
    },
  )
  watch(
    () => session.conversation.running?.turn,
    (turn, before) => {
      if (turn !== undefined && turn !== before) announce(t('say.answering'))
    },
  )
  watch(
    () => session.budgetWord,
    (word) => {
      // Of what a budget warns, the words above the message are told.
      if (word?.code === 'answer_limited') announce(word.text)
    },
  )
  watch(
    () => session.conversation.entries.at(-1),
    (entry, before) => {
      // Opening a session is not news; a turn that ends while the page is open is.
      if (!before || !entry || entry.seq <= before.seq) return
      if (entry.kind === 'note' && entry.note.what === 'failed') return alertAloud(turnFailureWords(entry.note.error.code))
      if (entry.kind !== 'said' || entry.role !== 'answer') return
      const text = spoken(entry.text)
      if (text) announce(text)
    },
  )
}

function spoken(text: string): string {
  if (reading.value === 'silent') return t('say.answered')
  if (reading.value === 'whole') return text
  return /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text
}
