/** Decisions that the server has not answered: until it does, however long, they may still arrive. */
import { ref } from 'vue'
import { useTimeouts } from '@/browser/timeouts'

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
