/** Messages that the server has not confirmed, kept by the browser per person and session. */
import { recall, remember } from '@/browser/storage'
import { useSessions } from '@/stores/sessions'
import { addContext, draftKey, type ViewContext } from '@/stores/viewContexts'
import { frameBytesOf, refused, type CommandError } from '@/wire/link'
import { RequestError } from '@/wire/request'
import type { Attachment } from '@/wire/types'
import { upload, type UploadWatch } from '@/wire/upload'
import { MAX_TEXT_BYTES } from './commands'
import { noteSaved, type Connection, type SessionState } from './state'

export interface Unsent {
  clientMessageId: string
  text: string
  /** What was uploaded with it. */
  attachments?: Attachment[]
  /** What views let the model know with it. */
  viewContexts?: readonly ViewContext[]
  /** The server will never take it as it is; it stays until the person edits or withdraws it. */
  refused?: CommandError
}

export interface Outbox {
  /** A new session's id once the server gave it one: asking for it again tells whether a message arrived. */
  sessionId: string | null
  messages: Unsent[]
}

const EMPTY: Outbox = { sessionId: null, messages: [] }
const TAB = 'sepal.tab'

export function recallOutbox(person: string, session: string | null): Outbox {
  try {
    const stored: unknown = JSON.parse(recall(keyOf(person, session)) ?? '[]')
    if (Array.isArray(stored)) return { sessionId: session, messages: stored as Unsent[] }
    return { ...EMPTY, ...(stored as Outbox) }
  } catch {
    return EMPTY
  }
}

/** `session` is null while the server has not stored the session. */
export function keepOutbox(person: string, session: string | null, { sessionId, messages }: Outbox): void {
  const stored = session === null ? { sessionId, messages } : messages
  remember(keyOf(person, session), messages.length === 0 ? null : JSON.stringify(stored))
}

/** Lets a message be written anew that was not confirmed, with what views added to it; false when it arrived after all. */
export async function takeBack(session: { typist: string; id: string | null; unsend: (id: string) => Promise<boolean> }, message: Unsent): Promise<boolean> {
  if (!(await session.unsend(message.clientMessageId))) return false
  for (const context of message.viewContexts ?? []) addContext(draftKey(session), context)
  return true
}

/** A message to a new session belongs to one tab: another tab that sent it too would ask for the work twice. */
function keyOf(person: string, session: string | null): string {
  return `unsent.${person}.${session ?? `new-${tab()}`}`
}

/** For a browser that refuses storage; then nothing outlives the tab anyway. */
const unstored = randomHex()

/** Survives a reload of the tab and nothing else. */
function tab(): string {
  try {
    const name = sessionStorage.getItem(TAB) ?? unstored
    sessionStorage.setItem(TAB, name)
    return name
  } catch {
    return unstored
  }
}

/** `crypto.randomUUID` is missing on plain http away from localhost. */
export function randomHex(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

// Delivers messages: each stays in the outbox until the server confirms or refuses it, or the person takes it back.

export function useMessageDelivery(state: SessionState, connection: Connection) {
  const { id, typist, unsent } = state
  const sessions = useSessions()
  const deliveries = new Map<string, Promise<boolean>>()

  /** Takes out what this person left unsent in the session that is opened. */
  function recall(sessionId: string | null): void {
    const outbox = recallOutbox(typist.value, sessionId)
    unsent.value = outbox.messages
    connection.newId = sessionId === null ? outbox.sessionId : null
  }

  /** The server could not say who it is until now; what was typed meanwhile is theirs. */
  function adopt(before: string, now: string): void {
    keepOutbox(before, id.value, { sessionId: null, messages: [] })
    const known = new Set(unsent.value.map(({ clientMessageId }) => clientMessageId))
    const kept = state.isOpen.value ? recallOutbox(now, id.value).messages : []
    const earlier = kept.filter(({ clientMessageId }) => !known.has(clientMessageId))
    unsent.value = [...earlier, ...unsent.value]
    if (state.isOpen.value) keep()
    deliverAll(earlier)
  }

  /** Gives the reason when the server could never take it; then nothing was sent. */
  function send(text: string, attachments: Attachment[] = [], viewContexts: readonly ViewContext[] = []): CommandError | null {
    const message: Unsent = { clientMessageId: `m_${randomHex()}`, text, ...(attachments.length > 0 && { attachments }), ...(viewContexts.length > 0 && { viewContexts }) }
    const mostBytes = state.ready.value?.limits.frameBytes ?? Infinity
    const bytes = new TextEncoder().encode(text).length
    if (bytes > MAX_TEXT_BYTES || frameBytesOf('message', { ...message }) > mostBytes) return refused('too_large').error
    state.failure.value = null
    unsent.value = [...unsent.value, message]
    keep()
    void deliver(message)
    return null
  }

  function deliverAll(messages: readonly Unsent[]): void {
    for (const message of messages) if (!message.refused) void deliver(message)
  }

  function deliver(message: Unsent): Promise<boolean> {
    const delivery = untilTaken(message)
    deliveries.set(message.clientMessageId, delivery)
    return delivery
  }

  /** Whether it left this page; false when it was taken back before. */
  async function untilTaken({ clientMessageId, text, attachments, viewContexts }: Unsent): Promise<boolean> {
    const current = connection.link
    if (!current) return false
    const ack = await current.keep('message', {
      clientMessageId,
      text,
      ...(attachments && { attachments: attachments.map(({ id }) => id) }),
      ...(viewContexts && { viewContexts: viewContexts.map((context) => ({ callId: context.callId, text: context.text })) }),
    })
    if (current !== connection.link) return true
    deliveries.delete(clientMessageId)
    if (ack.ok) {
      noteSaved(state)
      becomeStored()
      // The event may have come first; then it is in the transcript already.
      if (typeof ack.seq === 'number' && ack.seq <= state.conversation.value.seq) forget(clientMessageId)
      return true
    }
    if (ack.error.code === 'taken_back') forget(clientMessageId)
    else refuse(clientMessageId, ack.error)
    return false
  }

  /** A message that the server refused for good stays, with the reason, until the person has seen to it. */
  function refuse(clientMessageId: string, error: CommandError): void {
    unsent.value = unsent.value.map((message) => (message.clientMessageId === clientMessageId ? { ...message, refused: error } : message))
    keep()
  }

  /** Takes a message back that was not confirmed; false when it arrived after all. */
  async function unsend(clientMessageId: string): Promise<boolean> {
    const delivery = deliveries.get(clientMessageId)
    connection.link?.revise('message', (payload) => (payload.clientMessageId === clientMessageId ? null : payload))
    if (await delivery) return false
    forget(clientMessageId)
    // Nothing waits any more, so nothing is "not saved yet".
    if (unsent.value.length === 0) noteSaved(state)
    return true
  }

  /** Uploads a file to the open session, which the server stores by it. */
  async function attach(file: File, watch: UploadWatch): Promise<Attachment> {
    const session = id.value ?? connection.newId
    if (session === null) throw new RequestError(0, {})
    const attachment = await upload(session, file, watch)
    if (connection.newId === session) becomeStored()
    return attachment
  }

  /** What requests about the session call it; null while nobody knows. */
  function reach(): string | null {
    return id.value ?? connection.newId
  }

  /** A request stored the session. */
  function nowStored(): void {
    if (id.value === null) becomeStored()
  }

  function becomeStored(): void {
    if (id.value !== null || connection.newId === null) return
    keepOutbox(typist.value, null, { sessionId: null, messages: [] })
    state.bornId.value = connection.newId
    id.value = connection.newId
    keep()
    void sessions.refresh()
  }

  /** What stands in the conversation has arrived. */
  function confirmArrived(): void {
    if (unsent.value.length === 0) return
    const { entries, waiting } = state.conversation.value
    const arrived = new Set<string | undefined>([
      ...entries.map((entry) => (entry.kind === 'user' ? entry.clientMessageId : undefined)),
      ...waiting.map((message) => message.clientMessageId),
    ])
    for (const { clientMessageId } of unsent.value) if (arrived.has(clientMessageId)) forget(clientMessageId)
  }

  function forget(clientMessageId: string): void {
    unsent.value = unsent.value.filter((message) => message.clientMessageId !== clientMessageId)
    keep()
  }

  function keep(): void {
    keepOutbox(typist.value, id.value, { sessionId: connection.newId, messages: unsent.value })
  }

  return { recall, adopt, attach, reach, nowStored, send, deliverAll, unsend, confirmArrived, keep, forgetDeliveries: () => deliveries.clear() }
}
