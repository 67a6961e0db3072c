/** Decisions that the server has not answered: until it does, however long, they may still arrive. */
import { onBeforeUnmount, ref } from 'vue'

/** An accepted decision is seen in the queue; when it was seen before, the mark goes after this long. */
const SEEN_MS = 5_000

/** Acts later, unless what asked for it is gone by then. */
export function useLater(): (ms: number, act: () => void) => void {
  const timers = new Set<ReturnType<typeof setTimeout>>()
  onBeforeUnmount(() => timers.forEach(clearTimeout))
  return (ms, act) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, ms)
    timers.add(timer)
  }
}

/** `elsewhere`: decisions that are on their way by a tray that was drawn before this one. */
export function useSent(elsewhere: () => ReadonlySet<string> | undefined) {
  const sent = ref<ReadonlySet<string>>(new Set())
  const later = useLater()

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
