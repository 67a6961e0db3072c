/** What the tray lists and what becomes of it; pure. */
import { needsItsOwnLook } from '@/approval/call/cues'
import type { QueueCall } from '@/wire/types'

export interface Listed {
  /** The calls of the tray in their order; empty means that there is nothing to show. */
  calls: QueueCall[]
  pending: QueueCall[]
  /** What an approval of all may carry. */
  approvable: QueueCall[]
  approved: QueueCall[]
  /** Calls of the batch, decided ones included. */
  total: number
}

/** Decided calls stay until the last one is decided; calls whose outcome is unknown have a card of their own. */
export function listOf(calls: QueueCall[], lingering: ReadonlyMap<string, QueueCall>): Listed {
  const isOpen = calls.some(({ status }) => status === 'pending') || lingering.size > 0
  const batch = calls.filter(({ status, callId }) => status === 'pending' || lingering.has(callId) || (isOpen && (status === 'approved' || status === 'rejected')))
  const gone = [...lingering.values()].filter(({ callId }) => !calls.some((call) => call.callId === callId))
  const unknown = calls.filter(({ status, callId }) => status === 'unknown' && !lingering.has(callId))
  const pending = batch.filter(({ status }) => status === 'pending')
  const mine = pending.filter(({ mayDecide }) => mayDecide)
  return {
    calls: [...batch, ...gone, ...unknown],
    pending,
    approvable: mine.filter((call) => !call.approvers && !needsItsOwnLook(call)),
    approved: batch.filter(({ status }) => status === 'approved'),
    total: batch.length + gone.length,
  }
}

/** The next call in the list that still waits, going round at the end. */
export function nextPending(calls: QueueCall[], after: string | null, isOpen: (call: QueueCall) => boolean): QueueCall | null {
  const from = calls.findIndex(({ callId }) => callId === after) + 1
  return [...calls.slice(from), ...calls.slice(0, from)].find((call) => call.callId !== after && isOpen(call)) ?? null
}
