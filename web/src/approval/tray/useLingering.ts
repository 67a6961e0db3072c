/** Calls that somebody else decided: each stays in its place for a moment, and says by whom. */
import { ref } from 'vue'
import { useTimeouts } from '@/browser/timeouts'
import type { QueueCall } from '@/wire/types'

const LINGER_MS = 3_000

export function useLingering(onGone: (callId: string) => void) {
  const lingering = ref<ReadonlyMap<string, QueueCall>>(new Map())
  const later = useTimeouts()

  function linger(call: QueueCall): void {
    lingering.value = new Map(lingering.value).set(call.callId, call)
    later(LINGER_MS, () => {
      const rest = new Map(lingering.value)
      rest.delete(call.callId)
      lingering.value = rest
      onGone(call.callId)
    })
  }

  return { lingering, linger }
}
