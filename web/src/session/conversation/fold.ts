/**
 * The conversation as a fold of the session's events: pure, without clock or I/O. The same function reads
 * `system:ready.state.transcript.events`, older pages and live events, so that they cannot look different.
 */
import type { SessionEvents } from 'sepal-client'
import { isObject, numberOf, stringOf } from '@/wire/json'
import type { Attachment, CallReview, CallStatus, CallView, JsonObject, Person, QueueCall, Seq, SessionAssistantItem, StoredEvent, WaitingMessage } from '@/wire/types'
import { isSetting, type AgentError, type CallEntry, type Conversation, type Entry, type Fallback, type ForkedWorkspace, type Left, type Note, type SaidEntry, type Spent } from './conversation'
import { idleTurn } from './streaming'

/** What each event changes; other events say nothing of the conversation. */
const STEPS: ReadonlyMap<string, Step> = new Map<keyof SessionEvents, Step>([
  ['user:message', userMessage],
  ['agent:thinking', thinking],
  ['agent:message', said],
  ['agent:response', answered],
  ['agent:cancelled', cancelled],
  ['agent:error', failed],
  ['tool:view_call', calledByView],
  ['tool:approval_required', approvalRequired],
  ['tool:decided', decided],
  ['tool:started', started],
  ['tool:output', ended],
  ['context:compacted', compacted],
  ['history:reset', contextReset],
  ['session:forked', forked],
  ['session:workspace', workspaceCopied],
  ['session:changed', changed],
])

/** What a live event with this `seq` is to a page that has folded up to `known`. */
export function arrival(known: Seq, seq: Seq): 'next' | 'known' | 'gap' {
  if (seq <= known) return 'known'
  return seq === known + 1 ? 'next' : 'gap'
}

export function fold(before: Conversation, events: readonly StoredEvent[]): Conversation {
  const draft = new Draft(before)
  for (const event of events) step(draft, event)
  return draft.state
}

function step(draft: Draft, { seq, at, event, args }: StoredEvent): void {
  // The error of a failed call repeats the `seq` of its output, which already tells it.
  if (seq <= draft.state.seq) return
  draft.state.seq = seq
  const [first, last] = [args[0], args[args.length - 1]]
  const text = typeof first === 'string' ? first : ''
  STEPS.get(event)?.(draft, { place: { seq, at }, text, data: isObject(last) ? last : {} })
}

export function mergeQueue(before: Conversation, calls: readonly QueueCall[]): Conversation {
  const draft = new Draft(before)
  for (const call of calls) mergeCall(draft, call)
  return draft.state
}

/** The waiting messages of the server win: one that it does not list was taken or withdrawn. */
export function withWaiting(before: Conversation, waiting: WaitingMessage[]): Conversation {
  const seqs = new Set(waiting.map((message) => message.seq))
  const entries = before.entries.filter((entry) => !(entry.kind === 'user' && seqs.has(entry.seq)))
  return { ...before, entries, waiting: [...waiting] }
}

// Events of messages and turns: who said what, with which reasoning, and how the turn ended.

function userMessage(draft: Draft, { place, text, data }: Told): void {
  const clientMessageId = stringOf(data.clientMessageId)
  const attachments = Array.isArray(data.attachments) ? (data.attachments as Attachment[]) : []
  if (draft.state.running) {
    draft.state.waiting.push({ text, attachments, seq: place.seq, ...(clientMessageId ? { clientMessageId } : {}) })
    return
  }
  const author = isObject(data.author) ? (data.author as unknown as Person) : null
  draft.state.version = null
  draft.push({ kind: 'user', key: `m${place.seq}`, ...place, text, author, attachments, clientMessageId })
}

function thinking(draft: Draft, { place, data }: Told): void {
  const [turn, iteration] = [numberOf(data.turn), numberOf(data.iteration)]
  if (data.retry === true) beginVersion(draft)
  takeWaiting(draft, place, Array.isArray(data.took) ? data.took : [])
  const model = stringOf(data.model) ?? null
  const running = draft.state.running
  const isKnown = running && (running.turn - turn || running.iteration - iteration) >= 0
  draft.state.running = isKnown ? { ...running, model } : { ...idleTurn(turn, iteration, place.at), model }
}

function said(draft: Draft, { place, text, data }: Told): void {
  const [turn, iteration] = [numberOf(data.turn), numberOf(data.iteration)]
  const thought = endText(draft, turn, iteration, data)
  const key = `t${turn}.${iteration}`
  const answeredBy = fallbackOf(data)
  if (text || thought.reasoning || answeredBy) {
    draft.push({ kind: 'said', key, ...place, text, role: 'said', spent: null, answeredBy, ...thought })
  }
  for (const call of Array.isArray(data.calls) ? data.calls : []) {
    if (isObject(call)) updateCall(draft, place, call, {})
  }
}

function fallbackOf(data: JsonObject): Fallback | undefined {
  const by = data.answeredBy
  if (!isObject(by)) return undefined
  return { provider: stringOf(by.provider) ?? '', model: stringOf(by.model) ?? '', reason: stringOf(by.reason) ?? '' }
}

function answered(draft: Draft, { place, text, data }: Told): void {
  const turn = numberOf(data.turn)
  const iteration = draft.state.running?.iteration ?? place.seq
  const thought = endText(draft, turn, iteration, data)
  const spent: Spent = {
    model: stringOf(data.model),
    provider: stringOf(data.provider) ?? (draft.state.model === data.model ? draft.state.provider : null),
    usage: isObject(data.usage) ? data.usage : undefined,
    cost: typeof data.cost === 'number' ? data.cost : null,
    durationMs: typeof data.durationMs === 'number' ? data.durationMs : undefined,
    firstTokenMs: typeof data.firstTokenMs === 'number' ? data.firstTokenMs : undefined,
    finish: stringOf(data.finish),
    stopDetail: stringOf(data.stopDetail),
  }
  const calls = numberOf(data.droppedCalls)
  // Before the answer, which stays the last entry: it can be asked for again.
  if (calls > 0) draft.note(place, { what: 'dropped', calls, isFiltered: spent.finish === 'content_filter' || spent.finish === 'refusal' })
  draft.push({ kind: 'said', key: `t${turn}.${iteration}`, ...place, text, role: 'answer', spent, answeredBy: fallbackOf(data), ...thought })
  endTurn(draft, turn)
}

function cancelled(draft: Draft, { place, data }: Told): void {
  cut(draft, place, data, stringOf(data.text) ?? '')
  draft.note(place, { what: 'stopped' })
}

function failed(draft: Draft, { place, text, data }: Told): void {
  if (data.callId !== undefined) return
  cut(draft, place, data, draft.state.running?.text ?? '')
  draft.note(place, { what: 'failed', error: { ...(data as unknown as AgentError), text } })
}

/** The newest answer is asked for again: the server replaces it for the model, people can still read it. */
function beginVersion(draft: Draft): void {
  const open = draft.state.version
  const first = open ? null : newestAnswer(draft)
  if (first) draft.replace({ ...first, version: { group: first.key, n: 1 } })
  const group = open?.group ?? first?.key
  if (group === undefined) return
  const n = (open?.n ?? 1) + 1
  draft.state.version = { group, n }
  draft.state.versions = new Map(draft.state.versions).set(group, n)
}

/** The answer that ended the last turn, unless something came after it that is more than a setting. */
function newestAnswer({ state }: Draft): SaidEntry | null {
  const last = state.entries.findLast((entry) => !(entry.kind === 'note' && isSetting(entry.note)))
  return last?.kind === 'said' && last.role === 'answer' ? last : null
}

/** A message that was sent while the agent worked stands where the model read it. */
function takeWaiting(draft: Draft, { at }: Place, seqs: unknown[]): void {
  const isTaken = (message: WaitingMessage) => seqs.includes(message.seq)
  for (const { text, seq, attachments, clientMessageId } of draft.state.waiting.filter(isTaken)) {
    draft.state.version = null
    draft.push({ kind: 'user', key: `m${seq}`, seq, at, text, author: null, attachments, clientMessageId })
  }
  draft.state.waiting = draft.state.waiting.filter((message) => !isTaken(message))
}

/** Keeps what was already read of an answer that did not come to its end. */
function cut(draft: Draft, place: Place, data: JsonObject, text: string): void {
  const turn = numberOf(data.turn)
  const iteration = draft.state.running?.iteration ?? place.seq
  const thought = endText(draft, turn, iteration, data)
  const key = `t${turn}.${iteration}`
  if (text || thought.reasoning) draft.push({ kind: 'said', key, ...place, text, role: 'cut', spent: null, ...thought })
  endTurn(draft, turn)
}

type Thought = Pick<SaidEntry, 'reasoning' | 'reasoningMs'> & { reasoningLeftOut: number }

const NO_THOUGHT: Thought = { reasoning: '', reasoningMs: null, reasoningLeftOut: 0 }

/** What was streamed is now an entry. The event has the reasoning, unless the turn failed or its server is older. */
function endText({ state }: Draft, turn: number, iteration: number, data: JsonObject): Thought {
  const stored = isObject(data.reasoning) ? data.reasoning : null
  const told = stored && thoughtOf(stored)
  const running = state.running
  if (!running || running.turn !== turn || running.iteration !== iteration) return told ?? NO_THOUGHT
  const { reasoning, reasoningMs } = running
  state.running = { ...running, text: '', reasoning: '', restarted: false, isClosed: true, retry: null }
  return told ?? { reasoning, reasoningMs, reasoningLeftOut: 0 }
}

function thoughtOf({ text, durationMs, leftOutBytes }: JsonObject): Thought {
  return {
    reasoning: stringOf(text) ?? '',
    reasoningMs: typeof durationMs === 'number' ? durationMs : null,
    reasoningLeftOut: numberOf(leftOutBytes),
  }
}

function endTurn({ state }: Draft, turn: number): void {
  if (state.running && state.running.turn <= turn) state.running = null
}

// Events of calls: each call is one entry, from the moment that the model asks for it to its end.

function approvalRequired(draft: Draft, { place, data }: Told): void {
  const originalArgs = isObject(data.originalArgs) ? data.originalArgs : undefined
  updateCall(draft, place, data, { status: 'pending', ...defined({ askedBy: data.askedBy as CallView['askedBy'], originalArgs }) })
}

/** Nobody has asked about it yet; rules may decide it at once. */
function calledByView(draft: Draft, { place, data }: Told): void {
  updateCall(draft, place, data, { status: 'pending', askedBy: data.askedBy as CallView['askedBy'] })
}

function decided(draft: Draft, { place, data }: Told): void {
  const isTakenBack = data.scope === 'taken_back'
  const status: CallStatus = isTakenBack ? 'pending' : data.approved ? 'approved' : 'rejected'
  const before = draft.callEntry(stringOf(data.callId) ?? '')?.call
  const edited = data.edited === true
  updateCall(draft, place, data, {
    status,
    edited,
    editedBy: data.editedBy as Person | undefined,
    decidedBy: isTakenBack ? undefined : (data.by as Person | undefined),
    review: isTakenBack ? undefined : (data.review as CallReview | undefined),
    reason: isTakenBack ? undefined : stringOf(data.reason),
    ...(data.gesture !== undefined && { gesture: stringOf(data.gesture) }),
    ...(data.dryRun !== undefined && { tookResult: true }),
    ...(edited && isObject(data.args) && before ? { originalArgs: before.originalArgs ?? before.args } : {}),
  })
}

function started(draft: Draft, { place, data }: Told): void {
  updateCall(draft, place, data, { status: 'executing', ...defined({ view: stringOf(data.view) }) })
}

function ended(draft: Draft, { place, text, data }: Told): void {
  updateCall(draft, place, data, {
    status: (stringOf(data.status) ?? 'completed') as CallStatus,
    output: text,
    ...defined({
      durationMs: data.durationMs as number | undefined,
      exitCode: data.exitCode as number | undefined,
      truncated: data.truncated as CallView['truncated'],
      attachments: data.attachments as CallView['attachments'],
      blocks: data.blocks as CallView['blocks'],
      cause: stringOf(data.cause),
      // Views read it; the sandbox's own tools have none.
      structured: data.server !== 'sandbox' && isObject(data.structured) ? data.structured : undefined,
    }),
  })
}

/** A person said whether a call of unknown outcome happened; the row keeps their word. */
function settled(draft: Draft, place: Place, data: JsonObject): void {
  const by = isObject(data.by) ? (data.by as unknown as Person) : undefined
  updateCall(draft, place, data, defined({ settled: { happened: data.happened === true, by } }))
}

/** The call queue knows the latest state of its calls, and the arguments of an edited one. */
function mergeCall(draft: Draft, call: QueueCall): void {
  const entry = draft.callEntry(call.callId)
  if (!entry) return
  const { status, decidedBy, reason, edited, editedBy, args, originalArgs, digest } = call
  draft.replace({
    ...entry,
    call: { ...entry.call, ...defined({ status, decidedBy, reason, edited, editedBy, args, originalArgs, digest }) },
  })
}

function updateCall(draft: Draft, place: Place, data: JsonObject, change: Partial<CallView>): void {
  const callId = stringOf(data.callId)
  if (!callId) return
  const facts = defined({
    name: stringOf(data.name),
    server: stringOf(data.server),
    args: isObject(data.args) ? data.args : undefined,
    digest: stringOf(data.digest),
  })
  const known = draft.callEntry(callId)
  if (known) {
    draft.replace({ ...known, call: { ...known.call, ...facts, ...change } })
    return
  }
  // The page of history may begin after the call was asked.
  const call: CallView = { callId, name: '', server: '', args: {}, status: 'pending', edited: false, ...facts, ...change }
  draft.push({ kind: 'call', key: callId, ...place, call })
}

/** Without the keys that are undefined, so that spreading it never wipes what is known. */
function defined<T extends object>(value: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}

// Events of the session itself: its title, its model, and how much of the past the model reads.

function changed(draft: Draft, { place, data }: Told): void {
  if (typeof data.title === 'string') draft.state.title = data.title
  if (typeof data.model === 'string') {
    draft.state.model = data.model
    draft.state.provider = stringOf(data.provider) ?? draft.state.provider
    if (data.effort !== undefined) draft.state.effort = stringOf(data.effort) ?? null
    draft.note(place, { what: 'model', model: data.model, effort: draft.state.effort ?? null })
  }
  if (isObject(data.assistant)) draft.state.assistant = data.assistant as unknown as SessionAssistantItem
  if (typeof data.wholeWindow === 'boolean') draft.note(place, { what: 'window', whole: data.wholeWindow })
  if (isObject(data.placed)) draft.note(place, { what: 'placed', name: stringOf(data.placed.name) ?? '', path: stringOf(data.placed.path) ?? '' })
  if (isObject(data.ruleGiven)) draft.note(place, { what: 'ruleGiven', sentence: stringOf(data.ruleGiven.sentence) ?? '', ...ruleOf(data.ruleGiven), ...networkOf(data.ruleGiven) })
  if (isObject(data.ruleTakenBack)) draft.note(place, { what: 'ruleTakenBack', ...ruleOf(data.ruleTakenBack) })
  if (isObject(data.hostRefused)) draft.note(place, refusalOf(data.hostRefused))
  if (Array.isArray(data.compaction)) {
    draft.state.compaction = data.compaction.filter((strategy) => typeof strategy === 'string')
    draft.note(place, { what: 'compaction', strategies: draft.state.compaction })
  }
  if (typeof data.withdrawn === 'string') withdraw(draft, data.withdrawn)
  if (isObject(data.settled)) settled(draft, place, data.settled)
}

function compacted(draft: Draft, { place, data }: Told): void {
  const tokens = (value: unknown) => (isObject(value) ? numberOf(value.tokens) : 0)
  const strategy = stringOf(data.strategy) ?? ''
  draft.note(place, { what: 'compacted', strategy, before: tokens(data.before), after: tokens(data.after), left: leftOf(data.left), summary: stringOf(data.summary) ?? null, summarisedBy: modelOf(data.summarisedBy), cost: costOf(data.summarisedBy) })
}

function contextReset(draft: Draft, { place }: Told): void {
  draft.note(place, { what: 'reset' })
}

/** What stands above happened in that session. */
function forked(draft: Draft, { place, data }: Told): void {
  draft.state.running = null
  const is = typeof data.hasFiles !== 'boolean' ? 'apart' : data.hasFiles ? 'copying' : 'none'
  draft.note(place, { what: 'forked', sessionId: stringOf(data.sessionId) ?? '', fromSeq: numberOf(data.fromSeq), workspace: { is } })
}

/** The workspace of the fork has what it begins with; the line of the fork says what. */
function workspaceCopied(draft: Draft, { place, data }: Told): void {
  const why = stringOf(data.empty)
  const bytes = typeof data.copiedBytes === 'number' ? data.copiedBytes : null
  draft.settleFork(why ? { is: 'empty', why } : { is: 'copied', bytes, at: place.at })
}

function ruleOf({ id, by }: JsonObject): { id: string; by: string } {
  return { id: stringOf(id) ?? '', by: isObject(by) ? (stringOf(by.name) ?? '') : '' }
}

function networkOf({ network }: JsonObject): { network?: string[] } {
  return Array.isArray(network) ? { network: network.filter((host) => typeof host === 'string') } : {}
}

function refusalOf({ host, port, entry, onRequest, reason }: JsonObject): Note {
  return { what: 'hostRefused', host: stringOf(host) ?? '', port: numberOf(port), entry: stringOf(entry) ?? null, onRequest: onRequest === true, reason: stringOf(reason) ?? '' }
}

function leftOf(value: unknown): Left | null {
  if (!isObject(value)) return null
  const seq = (of: unknown) => (typeof of === 'number' ? of : null)
  return { messages: numberOf(value.messages), fromSeq: seq(value.fromSeq), toSeq: seq(value.toSeq) }
}

function modelOf(value: unknown): string | null {
  return isObject(value) ? (stringOf(value.model) ?? null) : null
}

function costOf(value: unknown): number | null {
  return isObject(value) && typeof value.cost === 'number' ? value.cost : null
}

function withdraw(draft: Draft, clientMessageId: string): void {
  draft.state.waiting = draft.state.waiting.filter((message) => message.clientMessageId !== clientMessageId)
  draft.remove((entry) => entry.kind === 'user' && entry.clientMessageId === clientMessageId)
}

// The draft of a conversation, which events are folded into.

/** Where an event stands in the journal. */
interface Place {
  seq: Seq
  at: string
}

/** An event as the steps of the fold read it: its first argument if it is a text, and its last if it is an object. */
interface Told {
  place: Place
  text: string
  data: JsonObject
}

type Step = (draft: Draft, told: Told) => void

/** One working copy per batch of events, so that folding a long history does not copy it per event. */
class Draft {
  readonly state: Conversation
  private readonly indexOf = new Map<string, number>()

  constructor(before: Conversation) {
    this.state = { ...before, entries: [...before.entries], waiting: [...before.waiting] }
    this.index()
  }

  push(entry: Entry): void {
    // A retried turn may repeat its numbers; two entries must not share a key.
    const key = this.indexOf.has(entry.key) ? `${entry.key}.${entry.seq}` : entry.key
    this.indexOf.set(key, this.state.entries.length)
    const version = entry.kind === 'note' && isSetting(entry.note) ? null : this.state.version
    this.state.entries.push({ ...entry, key, ...(version ? { version } : {}) })
  }

  note(place: Place, note: Note): void {
    if (note.what === 'reset') this.state.version = null
    this.push({ kind: 'note', key: `n${place.seq}`, ...place, note })
  }

  /** The newest line of a fork says what its workspace is; where it is on an older page, that page is folded with this. */
  settleFork(workspace: ForkedWorkspace): void {
    const entry = this.state.entries.findLast((entry) => entry.kind === 'note' && entry.note.what === 'forked')
    if (entry?.kind === 'note' && entry.note.what === 'forked') this.replace({ ...entry, note: { ...entry.note, workspace } })
  }

  replace(entry: Entry): void {
    const at = this.indexOf.get(entry.key)
    if (at !== undefined) this.state.entries[at] = entry
  }

  remove(isGone: (entry: Entry) => boolean): void {
    this.state.entries = this.state.entries.filter((entry) => !isGone(entry))
    this.index()
  }

  callEntry(callId: string): CallEntry | undefined {
    const at = this.indexOf.get(callId)
    const entry = at === undefined ? undefined : this.state.entries[at]
    return entry?.kind === 'call' ? entry : undefined
  }

  private index(): void {
    this.indexOf.clear()
    this.state.entries.forEach((entry, at) => this.indexOf.set(entry.key, at))
  }
}
