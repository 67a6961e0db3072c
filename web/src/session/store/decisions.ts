/** Decisions on their way: at most one of a call waits to be sent, and it is known until it is answered. */
import { shallowRef } from 'vue'
import type { Ack, SessionLink } from '@/wire/link'
import type { DecideAll, Decision, JsonObject } from '@/wire/types'

export function useDecisions() {
  /** Calls whose decision the server has not answered. */
  const deciding = shallowRef<ReadonlySet<string>>(new Set())
  const latest = new Map<string, symbol>()

  async function track(callIds: string[], answer: Promise<Ack>): Promise<Ack> {
    const mark = Symbol()
    for (const callId of callIds) latest.set(callId, mark)
    show()
    const ack = await answer
    for (const callId of callIds) if (latest.get(callId) === mark) latest.delete(callId)
    show()
    return ack
  }

  function show(): void {
    deciding.value = new Set(latest.keys())
  }

  /** A decision that was not sent yet is not sent any more. */
  function takeBack(link: SessionLink, callId: string): void {
    link.revise('tool:approval', (payload) => (payload.callId === callId ? null : payload))
    link.revise('tool:approval_all', (payload) => withoutCall(payload, callId))
  }

  /** Replaces what was decided of this call and not sent yet. */
  function decide(link: SessionLink, decision: Decision): Promise<Ack> {
    takeBack(link, decision.callId)
    return track([decision.callId], link.keep('tool:approval', { ...decision, scope: 'once' }))
  }

  /** What was decided singly stays as it was decided, as on the server. */
  function decideAll(link: SessionLink, decision: DecideAll): Promise<Ack> {
    const callIds = decision.callIds.filter((callId) => !latest.has(callId))
    if (callIds.length === 0) return Promise.resolve({ ok: true })
    return track(callIds, link.keep('tool:approval_all', { ...decision, callIds }))
  }

  function forget(): void {
    latest.clear()
    show()
  }

  return { deciding, decide, decideAll, takeBack, forget }
}

function withoutCall(payload: JsonObject, callId: string): JsonObject | null {
  const callIds = (payload.callIds as string[]).filter((other) => other !== callId)
  return callIds.length === 0 ? null : { ...payload, callIds }
}
