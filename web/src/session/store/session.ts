/** The open session: its state, with the socket, the events and the commands that change it. */
import { defineStore } from 'pinia'
import { watch } from 'vue'
import { EMPTY } from '@/session/conversation/conversation'
import { usePerson } from '@/stores/person'
import { useSessions } from '@/stores/sessions'
import { SessionLink, type LinkState, type Position, type Wanted } from '@/wire/link'
import type { ResourceSource, SystemReady } from '@/wire/types'
import { sessionCommands } from './commands'
import { useEventStream, useOlderEvents } from './eventStream'
import { useMessageDelivery } from './outbox'
import { clearSessionState, createSessionState, deriveFrom, resourceKey, type Connection, type SessionState } from './state'

export { resourceKey }

export const useSession = defineStore('session', () => {
  const person = usePerson()
  const sessions = useSessions()
  const state = createSessionState(person.me?.user.id ?? '')
  const connection: Connection = { link: null, newId: null }
  const delivery = useMessageDelivery(state, connection)
  const stream = useEventStream(state, connection, delivery)
  const older = useOlderEvents(state, stream)
  const { forgetDecisions, ...commands } = sessionCommands(state, connection)
  const { open, close, tryNow } = useConnection(state, connection, {
    onReady: stream.onReady,
    onEvent: stream.onEvent,
    onOpening: delivery.recall,
    onOpened: () => delivery.deliverAll(state.unsent.value),
    onClosed() {
      forgetDecisions()
      delivery.forgetDeliveries()
      stream.clear()
      older.clear()
    },
  })

  watch(
    () => person.me?.user.id,
    (now) => {
      const before = state.typist.value
      if (now === undefined || now === before) return
      state.typist.value = now
      if (before === '') delivery.adopt(before, now)
      else close()
    },
    { flush: 'sync' },
  )
  // The list need not wait for the server's word on what is shown here.
  watch([state.id, state.linkState], () => sessions.follow(state.linkState.value === 'open' ? state.id.value : null), { flush: 'sync' })

  const { attach, send, unsend, reach, nowStored } = delivery

  function forgetChange(source: ResourceSource): void {
    state.changedResources.value = new Set([...state.changedResources.value].filter((key) => key !== resourceKey(source)))
  }

  return { ...state, ...deriveFrom(state), ...commands, open, close, tryNow, loadOlder: older.load, loadBackTo: older.loadBackTo, entryAt: stream.entryAt, attach, send, unsend, reach, nowStored, forgetChange }
})

// Opens and closes the socket of a session, and tells the server at each connection which events the page has seen.

/** The parts that work on the session that is open. */
interface Parts {
  onReady(message: SystemReady): void
  onEvent(event: string, args: unknown[]): void
  /** The session is known, its socket about to open. */
  onOpening(sessionId: string | null): void
  onOpened(): void
  onClosed(): void
}

function useConnection(state: SessionState, connection: Connection, parts: Parts) {
  const { conversation, id, linkState, ready, trouble } = state
  const person = usePerson()

  /** `null` starts a new session, with the model that is wanted. Opening what is open already changes nothing. */
  function open(sessionId: string | null, wanted: Wanted = {}): void {
    if (connection.link && sessionId !== null && sessionId === id.value && linkState.value !== 'refused') return
    close()
    state.isOpen.value = true
    id.value = sessionId
    parts.onOpening(sessionId)
    const { onReady, onEvent } = parts
    connection.link = new SessionLink({ position, onReady, onEvent, onState, onReason }, wanted)
    connection.link.open()
    parts.onOpened()
  }

  /** What is not answered yet is answered with `left`, which is told in the session that comes next. */
  function close(): void {
    connection.link?.close()
    connection.link = null
    connection.newId = null
    parts.onClosed()
    clearSessionState(state)
  }

  /** A new session that nothing was told was never stored, and is gone when the server restarts. */
  function position(): Position {
    const isTold = state.unsent.value.some((message) => !message.refused) || conversation.value.seq > 0
    const sessionId = id.value ?? (isTold ? connection.newId : null)
    if (sessionId === null || !ready.value) return { sessionId, lastSeq: null, journalId: null }
    return { sessionId, lastSeq: conversation.value.seq, journalId: ready.value.journalId }
  }

  function onReason(code: string, text: string): void {
    trouble.value = { code, text }
    if (code === 'unauthorized') person.lost()
  }

  function onState(now: LinkState): void {
    if (now === 'refused' && trouble.value?.code === 'session_not_found' && id.value === null && connection.newId !== null) {
      // It was never stored, so it is begun anew; what was typed goes there.
      connection.newId = null
      ready.value = null
      conversation.value = EMPTY
      connection.link?.tryNow()
      return
    }
    linkState.value = now
    if (now === 'open') {
      state.lostSince.value = null
      trouble.value = null
    } else if (now === 'lost') {
      state.lostSince.value ??= Date.now()
    }
  }

  function tryNow(): void {
    connection.link?.tryNow()
  }

  return { open, close, tryNow }
}
