/** The answer that is being said: pieces of it are appended by their place, and none is shown twice or with a hole. */
import type { RunningTurn } from '@/wire/types'
import type { Conversation, Entry, Running, SaidEntry } from './conversation'

export interface Delta {
  text: string
  turn: number
  iteration: number
  attempt: number
  /** In UTF-16 code units from the start of this kind of text. */
  offset: number
  kind: 'text' | 'reasoning'
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

/** Takes over what the server says is going on; its text is at least as long as ours. */
export function withRunning(before: Conversation, turn: RunningTurn | null): Conversation {
  if (!turn) return { ...before, running: null }
  const idle = { ...idleTurn(turn.turn, turn.iteration, turn.since), attempt: turn.attempt }
  // Once calls are asked, what was said with them is an entry.
  const isClosed = turn.phase !== 'model'
  const { text, reasoning } = turn
  return { ...before, running: isClosed ? { ...idle, isClosed } : { ...idle, text, reasoning } }
}

/** A request of which nothing was said yet. */
export function idleTurn(turn: number, iteration: number, since: string): Running {
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

/**
 * Puts back what only a page that watched could know, after the stored events were folded anew: reasoning, and the
 * text of an answer that broke off. Entries are matched by their event, because a key made of a turn that began on
 * an older page is another one once that page is here.
 */
export function retainStreamed(before: Conversation, after: Conversation): Conversation {
  const entries = [...after.entries]
  for (const said of before.entries) {
    if (said.kind !== 'said' || !(said.reasoning || said.text)) continue
    const at = entries.findIndex((entry) => entry.kind === 'said' && entry.seq === said.seq)
    if (at < 0) insert(entries, said)
    else entries[at] = watched(entries[at] as SaidEntry, said)
  }
  return { ...after, entries }
}

function watched(stored: SaidEntry, said: SaidEntry): SaidEntry {
  if (stored.reasoning || !said.reasoning) return stored
  return { ...stored, reasoning: said.reasoning, reasoningMs: said.reasoningMs }
}

/** Before whatever else its event made. A message that waited has an older number where it was read. */
function insert(entries: Entry[], said: SaidEntry): void {
  const at = entries.findIndex(({ seq }) => seq >= said.seq)
  const isTaken = entries.some(({ key }) => key === said.key)
  const entry = isTaken ? { ...said, key: `${said.key}.${said.seq}` } : said
  entries.splice(at < 0 ? entries.length : at, 0, entry)
}
