/** What a person began on a card, by call: going to another card, or out of the tray, loses none of it. */
import { ref } from 'vue'
import type { EditDraft } from '@/approval/arguments/schema'

export type CardMode = 'look' | 'reason' | 'edit' | 'rule'

export interface CardState {
  mode: CardMode
  reason: string
  /** Null when nothing was changed. */
  draft: EditDraft | null
  /** The arguments as JSON instead of rows. */
  isRaw: boolean
}

const FRESH: Readonly<CardState> = { mode: 'look', reason: '', draft: null, isRaw: false }

export function useCardStates() {
  const states = ref(new Map<string, CardState>())

  function of(callId: string | undefined): CardState {
    return (callId === undefined ? undefined : states.value.get(callId)) ?? FRESH
  }

  function change(callId: string, change: Partial<CardState>): void {
    const before = of(callId)
    if (Object.entries(change).every(([key, value]) => before[key as keyof CardState] === value)) return
    states.value = new Map(states.value).set(callId, { ...before, ...change })
  }

  function forget(callId: string): void {
    if (!states.value.has(callId)) return
    const rest = new Map(states.value)
    rest.delete(callId)
    states.value = rest
  }

  return { of, change, forget }
}
