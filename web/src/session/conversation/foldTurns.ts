/** What events say of messages and turns: who said what, what was thought with it, and how the turn ended. */
import { isObject, numberOf, stringOf } from '@/wire/json'
import type { Attachment, JsonObject, Person, WaitingMessage } from '@/wire/types'
import { isSetting, type AgentError, type Fallback, type SaidEntry, type Spent } from './conversation'
import type { Draft, Place, Told } from './draft'
import { updateCall } from './foldCalls'
import { idleTurn } from './streaming'

export function userMessage(draft: Draft, { place, text, data }: Told): void {
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

export function thinking(draft: Draft, { place, data }: Told): void {
  const [turn, iteration] = [numberOf(data.turn), numberOf(data.iteration)]
  if (data.retry === true) beginVersion(draft)
  takeWaiting(draft, place, Array.isArray(data.took) ? data.took : [])
  const model = stringOf(data.model) ?? null
  const running = draft.state.running
  const isKnown = running && (running.turn - turn || running.iteration - iteration) >= 0
  draft.state.running = isKnown ? { ...running, model } : { ...idleTurn(turn, iteration, place.at), model }
}

export function said(draft: Draft, { place, text, data }: Told): void {
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

export function answered(draft: Draft, { place, text, data }: Told): void {
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

export function cancelled(draft: Draft, { place, data }: Told): void {
  cut(draft, place, data, stringOf(data.text) ?? '')
  draft.note(place, { what: 'stopped' })
}

export function failed(draft: Draft, { place, text, data }: Told): void {
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
