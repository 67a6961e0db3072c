/**
 * The conversation as a fold of the session's events: pure, without clock or I/O. The same function reads
 * `system:ready.state.transcript.events`, older pages and live events, so that they cannot look different.
 */
import { isObject } from '@/wire/json'
import type { QueueCall, Seq, StoredEvent, WaitingMessage } from '@/wire/types'
import type { Conversation } from './conversation'
import { Draft, type Step } from './draft'
import { approvalRequired, calledByView, decided, ended, mergeCall, started } from './foldCalls'
import { changed, compacted, contextReset, forked, workspaceCopied } from './foldSettings'
import { answered, cancelled, failed, said, thinking, userMessage } from './foldTurns'

/** What each event changes; other events say nothing of the conversation. */
const STEPS: ReadonlyMap<string, Step> = new Map([
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
