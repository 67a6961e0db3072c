/** Messages that the server has not confirmed, kept by the browser per person and session. */
import { recall, remember } from '@/browser/storage'
import { addContext, draftKey, type ViewContext } from '@/stores/viewContexts'
import type { CommandError } from '@/wire/link'
import type { Attachment } from '@/wire/types'

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
