/** The sessions of the inbox and what becomes of them; pure. */
import { isObject } from '@/wire/json'
import type { WaitingItem } from '@/wire/restTypes'
import type { CallStatus, ElicitationItem, JsonObject, Person, QueueCall, Seq, StoredEvent } from '@/wire/types'

/** A session in which calls wait, or waited until a moment ago. */
export interface WaitingGroup {
  sessionId: string
  title: string | null
  /** Whose session it is, where it is another's. */
  owner?: { id: string; name: string }
  /** The message that led to the calls, where it is another's. */
  prompt?: string
  since: string
  calls: QueueCall[]
  /** What servers ask in it. */
  asked: ElicitationItem[]
  /** What the calls reflect. */
  seq: Seq
  /** It was deleted, or is no longer the person's. */
  isGone: boolean
}

export function groupOf({ sessionId, title, owner, prompt, waitingSince, queue }: WaitingItem): WaitingGroup {
  return { sessionId, title: title ?? null, ...(owner && { owner, prompt: prompt ?? '' }), since: waitingSince, calls: queue.calls, asked: queue.elicitations ?? [], seq: queue.seq, isGone: false }
}

/** With that session in its place: where it stood, or where it belongs by how long it has waited. */
export function withGroup(groups: readonly WaitingGroup[], group: WaitingGroup): WaitingGroup[] {
  const at = groups.findIndex(({ sessionId }) => sessionId === group.sessionId)
  const before = groups[at]
  // An answer that was overtaken knows less than what is shown.
  if (before !== undefined) return before.seq > group.seq ? [...groups] : groups.map((other) => (other === before ? group : other))
  const next = groups.findIndex((other) => order(group, other) < 0)
  return next < 0 ? [...groups, group] : [...groups.slice(0, next), group, ...groups.slice(next)]
}

/** As the server lists them. */
function order(one: WaitingGroup, other: WaitingGroup): number {
  const [a, b] = [Date.parse(one.since), Date.parse(other.since)]
  return a === b ? (one.sessionId < other.sessionId ? -1 : 1) : a - b
}

/** What those events say of these calls: who decided them, and how. */
export function withEvents(calls: readonly QueueCall[], events: readonly StoredEvent[]): QueueCall[] {
  const byId = new Map(calls.map((call) => [call.callId, call]))
  for (const { event, args } of events) {
    const said = args.at(-1)
    if (typeof said !== 'object' || said === null) continue
    const call = byId.get(String((said as JsonObject).callId))
    // How it went on is its session's to tell.
    if (call !== undefined && !(event === 'tool:output' && call.decidedBy !== undefined)) byId.set(call.callId, { ...call, ...changeBy(call, event, said as JsonObject) })
  }
  return [...byId.values()]
}

function changeBy(call: QueueCall, event: string, said: JsonObject): Partial<QueueCall> {
  if (event === 'tool:decided') {
    if (said.scope === 'taken_back') return { status: 'pending' }
    const reason = typeof said.reason === 'string' ? { reason: said.reason } : {}
    const args = said.edited === true && isObject(said.args) ? { args: said.args, originalArgs: call.originalArgs ?? call.args } : {}
    const editedBy = isObject(said.editedBy) ? { editedBy: said.editedBy as unknown as Person } : {}
    return { status: said.approved === true ? 'approved' : 'rejected', decidedBy: said.by as Person, edited: said.edited === true, ...args, ...editedBy, ...reason }
  }
  return event === 'tool:output' ? { status: said.status as CallStatus } : {}
}
