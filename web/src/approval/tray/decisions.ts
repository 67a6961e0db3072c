/** The decisions of a tray: none is made by a key or click that was on its way before, and each is made once. */
import { ref, watch, type Ref } from 'vue'
import { needsItsOwnLook } from '@/approval/call/cues'
import type { useCardStates } from '@/approval/card/cardStates'
import type { InputGuard } from '@/browser/inputGuard'
import { useTimeouts } from '@/browser/scheduling'
import type { ShownCall } from '@/gestures/door'
import type { DecideAll, Decision, QueueCall, Settlement } from '@/wire/types'

interface Emit {
  (event: 'decide', decision: Decision): void
  (event: 'decide-all', decision: DecideAll): void
  (event: 'undecide', callId: string): void
  (event: 'settle', settlement: Settlement): void
}

interface Tray {
  guard: InputGuard
  /** The session that the calls are of. */
  session: Readonly<Ref<string | null>>
  sent: ReturnType<typeof useInFlightDecisions>
  states: ReturnType<typeof useCardStates>
  listed: Readonly<Ref<Listed>>
  isOpen(call: QueueCall): boolean
  /** Opens the card of a call that waits again. */
  show(callId: string): void
  /** Opens the next card after this call. */
  goOn(after: string | null): void
}

export function useTrayDecisions(emit: Emit, { guard, session, sent, states, listed, isOpen, show, goOn }: Tray) {
  function decide(decision: Decision): void {
    const call = listed.value.calls.find(({ callId }) => callId === decision.callId)
    if (!guard.isArmed() || call === undefined || !isOpen(call)) return
    mark([decision.callId])
    if (decision.approved && call.freshGesture) {
      const { args, argsText } = decision
      return void withGesture([{ ...shown(call), args, argsText }], (gesture) => {
        emit('decide', { ...decision, gesture })
        goOn(decision.callId)
      })
    }
    emit('decide', decision)
    goOn(decision.callId)
  }

  /** Sends what the person confirms by passkey or password; without that, the card is theirs again. */
  async function withGesture(calls: ShownCall[], send: (gesture: string) => void): Promise<void> {
    const callIds = calls.map(({ callId }) => callId)
    let gesture: string | null = null
    try {
      const { giveGesture } = await import('@/gestures/give')
      gesture = await giveGesture(calls)
    } catch {
      // A part that cannot be loaded is told by the strip.
    }
    if (gesture !== null) return send(gesture)
    sent.forget(callIds)
    if (callIds[0] !== undefined) show(callIds[0])
  }

  function shown({ callId, digest }: QueueCall): ShownCall {
    return { sessionId: session.value ?? '', callId, digest: digest ?? '' }
  }

  function takeBack(callId: string): void {
    if (!guard.isArmed()) return
    // On the server taking back what still waits there would refuse it.
    if (sent.isSent(callId)) return emit('undecide', callId)
    mark([callId])
    emit('decide', { callId, approved: false, takeBack: true })
    show(callId)
  }

  function settle(settlement: Settlement): void {
    if (!guard.isArmed()) return
    mark([settlement.callId])
    emit('settle', settlement)
    goOn(settlement.callId)
  }

  function decideAll(decision: DecideAll): void {
    mark(decision.callIds)
    const calls = listed.value.calls.filter(({ callId, freshGesture }) => decision.approved && freshGesture && decision.callIds.includes(callId))
    const send = (gesture?: string) => {
      emit('decide-all', gesture === undefined ? decision : { ...decision, gesture })
      goOn(decision.callIds.at(-1) ?? null)
    }
    if (calls.length > 0) void withGesture(calls.map(shown), send)
    else send()
  }

  /** What was begun on their cards is kept until the server has decided, as it may refuse. */
  function mark(callIds: string[]): void {
    sent.mark(callIds)
    for (const callId of callIds) states.change(callId, { mode: 'look' })
  }

  return { decide, takeBack, settle, decideAll }
}

/** What the server says meanwhile: answers to what was sent, and what somebody else decided. */
export function watchAnswers(calls: () => QueueCall[], { sent, states }: Pick<Tray, 'sent' | 'states'>, linger: (call: QueueCall) => void): void {
  watch(
    () => calls().map((call) => ({ ...call })),
    (now, before = []) => {
      for (const was of before) {
        const is = now.find(({ callId }) => callId === was.callId)
        if (sent.isMarked(was.callId) && (is === undefined || is.status !== was.status || is.digest !== was.digest || is.consents?.length !== was.consents?.length)) {
          sent.forget([was.callId])
        } else if (was.status === 'pending' && is?.status !== 'pending' && is?.decidedBy !== undefined) {
          linger(is)
        }
        if (is?.status !== 'pending') states.forget(was.callId)
      }
    },
  )
}

// Decisions in flight: until the server answers, however long that takes, they may still arrive.

/** An accepted decision is seen in the queue; when it was seen before, the mark goes after this long. */
const SEEN_MS = 5_000

/** `elsewhere`: decisions that are on their way by a tray that was drawn before this one. */
export function useInFlightDecisions(elsewhere: () => ReadonlySet<string> | undefined) {
  const sent = ref<ReadonlySet<string>>(new Set())
  const later = useTimeouts()

  function forget(callIds: string[]): void {
    sent.value = new Set([...sent.value].filter((callId) => !callIds.includes(callId)))
  }

  return {
    isSent: (callId: string): boolean => sent.value.has(callId) || elsewhere()?.has(callId) === true,
    isMarked: (callId: string): boolean => sent.value.has(callId),
    mark: (callIds: string[]): void => void (sent.value = new Set([...sent.value, ...callIds])),
    forget,
    /** The server answered, or the decision was taken back. Refused, it can be made again at once. */
    answered(callIds: string[], isAccepted: boolean): void {
      if (isAccepted) later(SEEN_MS, () => forget(callIds))
      else forget(callIds)
    },
  }
}

// The list of the tray, and the next call in it; pure.

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
