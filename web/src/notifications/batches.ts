/** Which calls nobody was told of yet; pure. */
import type { WaitingItem } from '@/wire/restTypes'

/** What a notification says: nothing that the model chose but the name of a tool. */
export interface NewBatch {
  sessionId: string
  title: string | null
  /** Of the first call. */
  tool: string
  calls: number
  /** The same for every tab that tells of it. */
  tag: string
}

export class SeenCalls {
  private readonly seen = new Map<string, Set<string>>()

  /** What is new in a session, and from now on is not. */
  take({ sessionId, title, queue }: WaitingItem): NewBatch | null {
    const before = this.seen.get(sessionId) ?? new Set()
    const pending = queue.calls.filter(({ status, mayDecide }) => status === 'pending' && mayDecide)
    const fresh = pending.filter(({ callId }) => !before.has(callId))
    // All of the batch: a call that is taken back waits again, and is no news.
    this.seen.set(sessionId, new Set(queue.calls.map(({ callId }) => callId)))
    const first = fresh[0]
    if (first === undefined) return null
    return { sessionId, title: title ?? null, tool: first.name, calls: fresh.length, tag: `${sessionId}/${first.callId}` }
  }

  /** Nothing waits there; what begins to wait later is news. */
  forget(sessionId: string): void {
    this.seen.delete(sessionId)
  }
}
