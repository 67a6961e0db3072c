/** A session as it is read: what was said and done, what is being said, and what waits to be read. */
import type { Attachment, CallView, ErrorCategory, JsonObject, Person, Seq, SessionAssistantItem, WaitingMessage } from '@/wire/types'

/** What went wrong in a turn, as the agent tells it. */
export interface AgentError {
  text: string
  code: string
  category: ErrorCategory
  retryable: boolean
  callId?: string
  name?: string
  requestId?: string
  turn?: number
  seq?: Seq
  at?: string
}

interface Placed {
  /** Stable over the whole life of the entry, also from streaming to finished. */
  key: string
  seq: Seq
  at: string
  /** Which of several answers to the same message it belongs to. */
  version?: Version
}

/** A part of an answer that was asked for again; `group` is the key of the first answer. */
export interface Version {
  group: string
  /** From 1. */
  n: number
}

export interface UserEntry extends Placed {
  kind: 'user'
  text: string
  author: Person | null
  attachments?: Attachment[] | undefined
  clientMessageId: string | undefined
}

/** Who answered in the place of the model that was asked, and why. */
export interface Fallback {
  provider: string
  model: string
  reason: string
}

export interface Spent {
  model: string | undefined
  /** Which provider answered, as far as the events tell; the answer itself does not. */
  provider: string | null
  usage: JsonObject | undefined
  cost: number | null | undefined
  durationMs: number | undefined
  /** From the start of the last request to its first piece. */
  firstTokenMs: number | undefined
  finish: string | undefined
  /** More of a refusal or a filter, in the provider's words. */
  stopDetail?: string | undefined
}

export interface SaidEntry extends Placed {
  kind: 'said'
  text: string
  reasoning: string
  reasoningMs: number | null
  /** Bytes of the reasoning that are not kept. */
  reasoningLeftOut?: number
  /** `said` goes with calls, `answer` ends the turn, `cut` was stopped or broke off. */
  role: 'said' | 'answer' | 'cut'
  spent: Spent | null
  answeredBy?: Fallback | undefined
}

export interface CallEntry extends Placed {
  kind: 'call'
  call: CallView
}

/** What left the context: how many entries, and the first message of a person among them. */
export interface Left {
  messages: number
  fromSeq: Seq | null
  /** The first message of a person behind them. */
  toSeq: Seq | null
}

/** What the workspace of a fork is; `apart` = earlier releases left the files where they were. */
export type ForkedWorkspace =
  | { is: 'apart' | 'none' | 'copying' }
  | { is: 'copied'; bytes: number | null; at: string }
  | { is: 'empty'; why: string }

export type Note =
  | { what: 'failed'; error: AgentError }
  | { what: 'stopped' }
  | { what: 'reset' }
  | { what: 'compacted'; strategy: string; before: number; after: number; left: Left | null; summary: string | null; summarisedBy: string | null; cost: number | null }
  | { what: 'compaction'; strategies: string[] }
  | { what: 'dropped'; calls: number; isFiltered: boolean }
  | { what: 'model'; model: string; effort: string | null }
  | { what: 'window'; whole: boolean }
  | { what: 'forked'; sessionId: string; fromSeq: Seq; workspace: ForkedWorkspace }
  | { what: 'placed'; name: string; path: string }
  /** For this session, by somebody. */
  | { what: 'ruleGiven'; id: string; sentence: string; by: string; network?: string[] }
  | { what: 'ruleTakenBack'; id: string; by: string }
  /** By the sandbox's proxy; `entry` is what a rule would name, if one would help. */
  | { what: 'hostRefused'; host: string; port: number; entry: string | null; onRequest: boolean; reason: string }

export interface NoteEntry extends Placed {
  kind: 'note'
  note: Note
}

export type Entry = UserEntry | SaidEntry | CallEntry | NoteEntry

export interface Retry {
  attempt: number
  maxAttempts: number
  /** Milliseconds since the epoch. */
  until: number
  /** The code of the error that ended the attempt before; empty where nothing was said. */
  cause: string
}

export interface Running {
  turn: number
  iteration: number
  attempt: number
  text: string
  reasoning: string
  model: string | null
  since: string
  /** A newer attempt replaced text that was already read. */
  restarted: boolean
  /** The text of this iteration became an entry; what still trickles in is already known. */
  isClosed: boolean
  retry: Retry | null
  reasoningFrom: number | null
  reasoningMs: number | null
}

export interface Conversation {
  /** The newest event that was folded; what comes next must be `seq + 1`. */
  seq: Seq
  entries: Entry[]
  running: Running | null
  waiting: WaitingMessage[]
  title: string | null
  /** What the session was switched to; null while nothing of that is known. */
  model: string | null
  provider: string | null
  /** How much the model may think; undefined while nothing of that is known. */
  effort: string | null | undefined
  /** What the session chose to leave its context; empty = what the settings say, undefined while nothing of that is known. */
  compaction: string[] | undefined
  /** The version of the assistant that the session took into use; undefined while nothing of that is known. */
  assistant?: SessionAssistantItem
  /** How many answers there are to one message, by the key of the first. */
  versions: ReadonlyMap<string, number>
  /** The version that is being made: whatever comes before the next message belongs to it. */
  version: Version | null
}

export const EMPTY: Conversation = { seq: 0, entries: [], running: null, waiting: [], title: null, model: null, provider: null, effort: undefined, compaction: undefined, versions: new Map(), version: null }

/** A note about what holds from the next request on, or of a message; it belongs to no answer. */
export function isSetting(note: Note): boolean {
  return ['model', 'window', 'placed', 'ruleGiven', 'ruleTakenBack', 'hostRefused'].includes(note.what)
}
