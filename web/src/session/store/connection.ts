/** Opens and closes the socket of a session, and says at each connection what the page has already seen. */
import { EMPTY } from '@/session/conversation/conversation'
import { usePerson } from '@/stores/person'
import { SessionLink, type LinkState, type Position, type Wanted } from '@/wire/link'
import type { SystemReady } from '@/wire/types'
import { clearSessionState, type Connection, type SessionState } from './state'

/** The parts that work on the session that is open. */
interface Parts {
  onReady(message: SystemReady): void
  onEvent(event: string, args: unknown[]): void
  /** The session is known, its socket about to open. */
  onOpening(sessionId: string | null): void
  onOpened(): void
  onClosed(): void
}

export function useConnection(state: SessionState, connection: Connection, parts: Parts) {
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
