/** Which call of the tray is open: it stays open while it waits, then the next one that waits follows. */
import { computed, ref, watch, type Ref } from 'vue'
import type { QueueCall } from '@/wire/types'
import { nextPending, type Listed } from './queue'

interface Calls {
  listed: Readonly<Ref<Listed>>
  lingering: Readonly<Ref<ReadonlyMap<string, QueueCall>>>
  /** Whether the person has still to decide it. */
  isOpen(call: QueueCall): boolean
  /** Another call than before is open. */
  onChange(): void
  onEmpty(): void
}

export function useTraySelection({ listed, lingering, isOpen, onChange, onEmpty }: Calls) {
  const currentId = ref<string | null>(null)
  const current = computed(() => listed.value.calls.find(({ callId }) => callId === currentId.value) ?? listed.value.calls[0] ?? null)

  watch(
    () => [idsOf(listed.value.calls), idsOf(listed.value.pending), lingering.value.size] as const,
    ([ids, pendingIds], before) => {
      const shown = currentId.value
      const isKnown = listed.value.calls.some(({ callId }) => callId === shown)
      const wasPending = before?.[1].split(' ').includes(shown ?? '') === true
      const isDecided = wasPending && !pendingIds.split(' ').includes(shown ?? '') && !lingering.value.has(shown ?? '')
      if (ids === '') currentId.value = null
      else if (!isKnown || isDecided) currentId.value = (nextOpen(shown) ?? listed.value.calls[0])?.callId ?? null
      if (ids === '') onEmpty()
      if (currentId.value !== shown) onChange()
    },
    { immediate: true },
  )

  function nextOpen(after: string | null): QueueCall | null {
    return nextPending(listed.value.calls, after, isOpen)
  }

  /** A call has left the list by itself; if it was open, the next one that waits is. */
  function leaveGone(callId: string): void {
    if (currentId.value !== callId || listed.value.pending.length === 0) return
    currentId.value = nextOpen(callId)?.callId ?? currentId.value
  }

  /** Goes to a call that waits, unless the open one does, or has just been decided elsewhere. */
  function preferPending(): void {
    if (current.value === null || current.value.status === 'pending' || currentId.value === null || lingering.value.has(currentId.value)) return
    currentId.value = nextOpen(null)?.callId ?? currentId.value
  }

  /** The call before or after the open one, going round. */
  function neighbour(by: 1 | -1): QueueCall | undefined {
    const { calls } = listed.value
    const at = calls.findIndex(({ callId }) => callId === current.value?.callId)
    return calls[(at + by + calls.length) % calls.length]
  }

  return { currentId, current, nextOpen, leaveGone, preferPending, neighbour }
}

function idsOf(calls: readonly QueueCall[]): string {
  return calls.map(({ callId }) => callId).join(' ')
}
