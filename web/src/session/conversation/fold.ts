/**
 * The transcript as a fold of the session's events: pure, without clock or I/O. The same function reads
 * `system:ready.state.transcript.events`, older pages and live events, so that they cannot look different.
 */
import { isObject } from '@/wire/json'
import type {
  AgentError,
  CallStatus,
  CallView,
  JsonObject,
  Person,
  QueueCall,
  RunningTurn,
  Seq,
  StoredEvent,
  WaitingMessage,
} from '@/wire/types'

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
  clientMessageId: string | undefined
}

export interface Spent {
  model: string | undefined
  usage: JsonObject | undefined
  cost: number | null | undefined
  durationMs: number | undefined
  finish: string | undefined
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
}

export interface CallEntry extends Placed {
  kind: 'call'
  call: CallView
}

export type Note =
  | { what: 'failed'; error: AgentError }
  | { what: 'stopped' }
  | { what: 'reset' }
  | { what: 'compacted'; strategy: string; before: number; after: number }
  | { what: 'dropped'; calls: number; isFiltered: boolean }
  | { what: 'model'; model: string }
  | { what: 'window'; whole: boolean }

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
  /** How many answers there are to one message, by the key of the first. */
  versions: ReadonlyMap<string, number>
  /** The version that is being made: whatever comes before the next message belongs to it. */
  version: Version | null
}

export interface Delta {
  text: string
  turn: number
  iteration: number
  attempt: number
  /** In UTF-16 code units from the start of this kind of text. */
  offset: number
  kind: 'text' | 'reasoning'
}

export const EMPTY: Conversation = { seq: 0, entries: [], running: null, waiting: [], title: null, model: null, provider: null, versions: new Map(), version: null }

/** What a live event with this `seq` is to a page that has folded up to `known`. */
export function arrival(known: Seq, seq: Seq): 'next' | 'known' | 'gap' {
  if (seq <= known) return 'known'
  return seq === known + 1 ? 'next' : 'gap'
}

export function fold(before: Conversation, events: readonly StoredEvent[]): Conversation {
  const draft = new Draft(before)
  for (const event of events) draft.step(event)
  return draft.finish()
}

/** The call queue knows the latest state of its calls, and the arguments of an edited one. */
export function mergeQueue(before: Conversation, calls: readonly QueueCall[]): Conversation {
  const draft = new Draft(before)
  for (const call of calls) draft.mergeCall(call)
  return draft.finish()
}

/** Takes over what the server says is going on; its text is at least as long as ours. */
export function withRunning(before: Conversation, turn: RunningTurn | null): Conversation {
  if (!turn) return { ...before, running: null }
  const idle = { ...idleTurn(turn.turn, turn.iteration, turn.since), attempt: turn.attempt }
  // Once calls are asked, what was said with them is an entry.
  const isClosed = turn.phase !== 'model'
  const { text, reasoning } = turn
  return { ...before, running: isClosed ? { ...idle, isClosed } : { ...idle, text, reasoning } }
}

/** The waiting messages of the server win: one that it does not list was taken or withdrawn. */
export function withWaiting(before: Conversation, waiting: WaitingMessage[]): Conversation {
  const seqs = new Set(waiting.map((message) => message.seq))
  const entries = before.entries.filter((entry) => !(entry.kind === 'user' && seqs.has(entry.seq)))
  return { ...before, entries, waiting: [...waiting] }
}

export type DeltaResult = { running: Running; isGap: false } | { running: Running | null; isGap: true }

/**
 * Appends streamed text by (turn, iteration, attempt, offset): a newer attempt replaces what was shown, an overlap
 * is cut, and a gap is reported, because text with a hole in it would read like the model's own words.
 */
export function applyDelta(before: Running | null, delta: Delta, now: number): DeltaResult {
  const order = before ? compareAttempts(before, delta) : -1
  if (before && (order > 0 || isOver(before, delta))) return { running: before, isGap: false }
  let running = before
  if (!running || order < 0) {
    if (delta.offset > 0) return { running: before, isGap: true }
    running = beginAttempt(before, delta, now)
  }
  const shown = running[delta.kind]
  if (delta.offset > shown.length) return { running, isGap: true }
  const addition = delta.text.slice(shown.length - delta.offset)
  return { running: appendText(running, delta.kind, addition, now), isGap: false }
}

function isOver(running: Running, delta: Delta): boolean {
  return running.isClosed && running.turn === delta.turn && running.iteration === delta.iteration
}

function appendText(running: Running, kind: Delta['kind'], addition: string, now: number): Running {
  if (kind === 'reasoning') {
    return { ...running, reasoning: running.reasoning + addition, reasoningFrom: running.reasoningFrom ?? now, retry: null }
  }
  const thoughtFor = running.reasoningFrom === null ? null : now - running.reasoningFrom
  return { ...running, text: running.text + addition, reasoningMs: running.reasoningMs ?? thoughtFor, retry: null }
}

function beginAttempt(before: Running | null, delta: Delta, now: number): Running {
  const isSameIteration = before?.turn === delta.turn && before.iteration === delta.iteration
  return {
    ...idleTurn(delta.turn, delta.iteration, isSameIteration ? before.since : new Date(now).toISOString()),
    attempt: delta.attempt,
    model: before?.model ?? null,
    restarted: isSameIteration && before.text !== '',
  }
}

/** Negative: the delta is newer than what runs. */
function compareAttempts(running: Running, delta: Delta): number {
  return (
    running.turn - delta.turn || running.iteration - delta.iteration || running.attempt - delta.attempt
  )
}

function idleTurn(turn: number, iteration: number, since: string): Running {
  return {
    turn,
    iteration,
    attempt: 0,
    text: '',
    reasoning: '',
    model: null,
    since,
    restarted: false,
    isClosed: false,
    retry: null,
    reasoningFrom: null,
    reasoningMs: null,
  }
}

/** One working copy per batch of events, so that folding a long history does not copy it per event. */
class Draft {
  private readonly state: Conversation
  private readonly indexOf = new Map<string, number>()

  constructor(before: Conversation) {
    this.state = { ...before, entries: [...before.entries], waiting: [...before.waiting] }
    this.index()
  }

  finish(): Conversation {
    return this.state
  }

  step({ seq, at, event, args }: StoredEvent): void {
    // The error of a failed call repeats the `seq` of its output, which already tells it.
    if (seq <= this.state.seq) return
    this.state.seq = seq
    const [first, last] = [args[0], args[args.length - 1]]
    const text = typeof first === 'string' ? first : ''
    const data = isObject(last) ? last : {}
    const place = { seq, at }
    switch (event) {
      case 'user:message':
        return this.userMessage(place, text, data)
      case 'agent:thinking':
        return this.thinking(place, data)
      case 'agent:message':
        return this.said(place, text, data)
      case 'agent:response':
        return this.answered(place, text, data)
      case 'agent:cancelled':
        return this.cancelled(place, data)
      case 'agent:error':
        return this.failed(place, text, data)
      case 'tool:approval_required':
        return this.updateCall(place, data, { status: 'pending' })
      case 'tool:decided':
        return this.decided(place, data)
      case 'tool:started':
        return this.updateCall(place, data, { status: 'executing' })
      case 'tool:output':
        return this.ended(place, text, data)
      case 'context:compacted':
        return this.compacted(place, data)
      case 'history:reset':
        return this.note(place, { what: 'reset' })
      case 'session:changed':
        return this.changed(place, data)
    }
  }

  mergeCall(call: QueueCall): void {
    const entry = this.callEntry(call.callId)
    if (!entry) return
    const { status, decidedBy, reason, edited, args, originalArgs, digest } = call
    this.replace({
      ...entry,
      call: { ...entry.call, ...defined({ status, decidedBy, reason, edited, args, originalArgs, digest }) },
    })
  }

  private userMessage(place: { seq: Seq; at: string }, text: string, data: JsonObject): void {
    const clientMessageId = stringOf(data.clientMessageId)
    if (this.state.running) {
      this.state.waiting.push({ text, seq: place.seq, ...(clientMessageId ? { clientMessageId } : {}) })
      return
    }
    const author = isObject(data.author) ? (data.author as unknown as Person) : null
    this.state.version = null
    this.push({ kind: 'user', key: `m${place.seq}`, ...place, text, author, clientMessageId })
  }

  private thinking(place: { seq: Seq; at: string }, data: JsonObject): void {
    const [turn, iteration] = [numberOf(data.turn), numberOf(data.iteration)]
    if (data.retry === true) this.again()
    this.take(place, Array.isArray(data.took) ? data.took : [])
    const model = stringOf(data.model) ?? null
    const running = this.state.running
    const isKnown = running && (running.turn - turn || running.iteration - iteration) >= 0
    this.state.running = isKnown ? { ...running, model } : { ...idleTurn(turn, iteration, place.at), model }
  }

  /** The newest answer is asked for again: the server replaces it for the model, people can still read it. */
  private again(): void {
    const open = this.state.version
    const first = open ? null : this.newestAnswer()
    if (first) this.replace({ ...first, version: { group: first.key, n: 1 } })
    const group = open?.group ?? first?.key
    if (group === undefined) return
    const n = (open?.n ?? 1) + 1
    this.state.version = { group, n }
    this.state.versions = new Map(this.state.versions).set(group, n)
  }

  /** The answer that ended the last turn, unless something came after it that is more than a setting. */
  private newestAnswer(): SaidEntry | null {
    const last = this.state.entries.findLast((entry) => !(entry.kind === 'note' && isSetting(entry.note)))
    return last?.kind === 'said' && last.role === 'answer' ? last : null
  }

  /** A message that was sent while the agent worked stands where the model read it. */
  private take(place: { at: string }, seqs: unknown[]): void {
    const isTaken = (message: WaitingMessage) => seqs.includes(message.seq)
    for (const { text, seq, clientMessageId } of this.state.waiting.filter(isTaken)) {
      this.state.version = null
      this.push({ kind: 'user', key: `m${seq}`, seq, at: place.at, text, author: null, clientMessageId })
    }
    this.state.waiting = this.state.waiting.filter((message) => !isTaken(message))
  }

  private said(place: { seq: Seq; at: string }, text: string, data: JsonObject): void {
    const [turn, iteration] = [numberOf(data.turn), numberOf(data.iteration)]
    const thought = this.endText(turn, iteration, data)
    const key = `t${turn}.${iteration}`
    if (text || thought.reasoning) this.push({ kind: 'said', key, ...place, text, role: 'said', spent: null, ...thought })
    for (const call of Array.isArray(data.calls) ? data.calls : []) {
      if (isObject(call)) this.updateCall(place, call, {})
    }
  }

  private answered(place: { seq: Seq; at: string }, text: string, data: JsonObject): void {
    const turn = numberOf(data.turn)
    const iteration = this.state.running?.iteration ?? place.seq
    const thought = this.endText(turn, iteration, data)
    const spent: Spent = {
      model: stringOf(data.model),
      usage: isObject(data.usage) ? data.usage : undefined,
      cost: typeof data.cost === 'number' ? data.cost : null,
      durationMs: typeof data.durationMs === 'number' ? data.durationMs : undefined,
      finish: stringOf(data.finish),
    }
    const calls = numberOf(data.droppedCalls)
    // Before the answer, which stays the last entry: it can be asked for again.
    if (calls > 0) this.note(place, { what: 'dropped', calls, isFiltered: spent.finish === 'content_filter' })
    this.push({ kind: 'said', key: `t${turn}.${iteration}`, ...place, text, role: 'answer', spent, ...thought })
    this.endTurn(turn)
  }

  private cancelled(place: { seq: Seq; at: string }, data: JsonObject): void {
    this.cut(place, data, stringOf(data.text) ?? '')
    this.note(place, { what: 'stopped' })
  }

  private failed(place: { seq: Seq; at: string }, text: string, data: JsonObject): void {
    if (data.callId !== undefined) return
    this.cut(place, data, this.state.running?.text ?? '')
    this.note(place, { what: 'failed', error: { ...(data as unknown as AgentError), text } })
  }

  /** Keeps what was already read of an answer that did not come to its end. */
  private cut(place: { seq: Seq; at: string }, data: JsonObject, text: string): void {
    const turn = numberOf(data.turn)
    const iteration = this.state.running?.iteration ?? place.seq
    const thought = this.endText(turn, iteration, data)
    const key = `t${turn}.${iteration}`
    if (text || thought.reasoning) this.push({ kind: 'said', key, ...place, text, role: 'cut', spent: null, ...thought })
    this.endTurn(turn)
  }

  private decided(place: { seq: Seq; at: string }, data: JsonObject): void {
    const isTakenBack = data.scope === 'taken_back'
    const status: CallStatus = isTakenBack ? 'pending' : data.approved ? 'approved' : 'rejected'
    const before = this.callEntry(stringOf(data.callId) ?? '')?.call
    const edited = data.edited === true
    this.updateCall(place, data, {
      status,
      edited,
      decidedBy: isTakenBack ? undefined : (data.by as Person | undefined),
      reason: isTakenBack ? undefined : stringOf(data.reason),
      ...(edited && isObject(data.args) && before ? { originalArgs: before.originalArgs ?? before.args } : {}),
    })
  }

  private ended(place: { seq: Seq; at: string }, text: string, data: JsonObject): void {
    this.updateCall(place, data, {
      status: (stringOf(data.status) ?? 'completed') as CallStatus,
      output: text,
      ...defined({
        durationMs: data.durationMs as number | undefined,
        exitCode: data.exitCode as number | undefined,
        truncated: data.truncated as CallView['truncated'],
        cause: stringOf(data.cause),
      }),
    })
  }

  private updateCall(place: { seq: Seq; at: string }, data: JsonObject, change: Partial<CallView>): void {
    const callId = stringOf(data.callId)
    if (!callId) return
    const facts = defined({
      name: stringOf(data.name),
      server: stringOf(data.server),
      args: isObject(data.args) ? data.args : undefined,
      digest: stringOf(data.digest),
    })
    const known = this.callEntry(callId)
    if (known) {
      this.replace({ ...known, call: { ...known.call, ...facts, ...change } })
      return
    }
    // The page of history may begin after the call was asked.
    const call: CallView = { callId, name: '', server: '', args: {}, status: 'pending', edited: false, ...facts, ...change }
    this.push({ kind: 'call', key: callId, ...place, call })
  }

  private compacted(place: { seq: Seq; at: string }, data: JsonObject): void {
    const tokens = (value: unknown) => (isObject(value) ? numberOf(value.tokens) : 0)
    const strategy = stringOf(data.strategy) ?? ''
    this.note(place, { what: 'compacted', strategy, before: tokens(data.before), after: tokens(data.after) })
  }

  private changed(place: { seq: Seq; at: string }, data: JsonObject): void {
    if (typeof data.title === 'string') this.state.title = data.title
    if (typeof data.model === 'string') {
      this.state.model = data.model
      this.state.provider = stringOf(data.provider) ?? this.state.provider
      this.note(place, { what: 'model', model: data.model })
    }
    if (typeof data.wholeWindow === 'boolean') this.note(place, { what: 'window', whole: data.wholeWindow })
    if (typeof data.withdrawn === 'string') this.withdraw(data.withdrawn)
    if (isObject(data.settled)) this.settled(place, data.settled as JsonObject)
  }

  /** A person said whether a call of unknown outcome happened; the row keeps their word. */
  private settled(place: { seq: Seq; at: string }, data: JsonObject): void {
    const by = isObject(data.by) ? (data.by as unknown as Person) : undefined
    this.updateCall(place, data, defined({ settled: { happened: data.happened === true, by } }))
  }

  private withdraw(clientMessageId: string): void {
    this.state.waiting = this.state.waiting.filter((message) => message.clientMessageId !== clientMessageId)
    this.state.entries = this.state.entries.filter(
      (entry) => !(entry.kind === 'user' && entry.clientMessageId === clientMessageId),
    )
    this.index()
  }

  private note(place: { seq: Seq; at: string }, note: Note): void {
    if (note.what === 'reset') this.state.version = null
    this.push({ kind: 'note', key: `n${place.seq}`, ...place, note })
  }

  /** What was streamed is now an entry. The event has the reasoning, unless the turn failed or its server is older. */
  private endText(turn: number, iteration: number, data: JsonObject): Thought {
    const stored = isObject(data.reasoning) ? data.reasoning : null
    const told = stored && thoughtOf(stored)
    const running = this.state.running
    if (!running || running.turn !== turn || running.iteration !== iteration) return told ?? NO_THOUGHT
    const { reasoning, reasoningMs } = running
    this.state.running = { ...running, text: '', reasoning: '', restarted: false, isClosed: true, retry: null }
    return told ?? { reasoning, reasoningMs, reasoningLeftOut: 0 }
  }

  private endTurn(turn: number): void {
    if (this.state.running && this.state.running.turn <= turn) this.state.running = null
  }

  private callEntry(callId: string): CallEntry | undefined {
    const at = this.indexOf.get(callId)
    const entry = at === undefined ? undefined : this.state.entries[at]
    return entry?.kind === 'call' ? entry : undefined
  }

  private push(entry: Entry): void {
    // A retried turn may repeat its numbers; two entries must not share a key.
    const key = this.indexOf.has(entry.key) ? `${entry.key}.${entry.seq}` : entry.key
    this.indexOf.set(key, this.state.entries.length)
    const version = entry.kind === 'note' && isSetting(entry.note) ? null : this.state.version
    this.state.entries.push({ ...entry, key, ...(version ? { version } : {}) })
  }

  private replace(entry: Entry): void {
    const at = this.indexOf.get(entry.key)
    if (at !== undefined) this.state.entries[at] = entry
  }

  private index(): void {
    this.indexOf.clear()
    this.state.entries.forEach((entry, at) => this.indexOf.set(entry.key, at))
  }
}

type Thought = Pick<SaidEntry, 'reasoning' | 'reasoningMs'> & { reasoningLeftOut: number }

const NO_THOUGHT: Thought = { reasoning: '', reasoningMs: null, reasoningLeftOut: 0 }

function thoughtOf({ text, durationMs, leftOutBytes }: JsonObject): Thought {
  return {
    reasoning: stringOf(text) ?? '',
    reasoningMs: typeof durationMs === 'number' ? durationMs : null,
    reasoningLeftOut: numberOf(leftOutBytes),
  }
}

/** A note about what holds from the next request on; it belongs to no answer. */
export function isSetting(note: Note): boolean {
  return note.what === 'model' || note.what === 'window'
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** Without the keys that are undefined, so that spreading it never wipes what is known. */
function defined<T extends object>(value: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}
