/** The sentence of a rule that is being made. It is always that of the rule as it is chosen now, or none. */
import { onBeforeUnmount, shallowRef, watch } from 'vue'
import { door } from './door'
import type { NewRule, RulePreview } from './types'

/** Nobody reads a sentence for each letter that is typed. */
export const TYPING_MS = 300

export interface Previewed {
  /** Exactly what the sentence is about. */
  rule: NewRule
  preview: RulePreview
}

export function usePreview(wanted: () => NewRule | null) {
  const shown = shallowRef<Previewed | null>(null)
  const refusal = shallowRef<unknown>(null)
  const isAsking = shallowRef(false)
  let timer: ReturnType<typeof setTimeout> | undefined
  let turn = 0

  watch(
    () => JSON.stringify(wanted()),
    (_, before) => {
      forget()
      if (wanted() === null) return
      isAsking.value = true
      if (before === undefined || before === 'null') void ask()
      else timer = setTimeout(() => void ask(), TYPING_MS)
    },
    { immediate: true },
  )
  onBeforeUnmount(forget)

  function forget(): void {
    clearTimeout(timer)
    turn += 1
    shown.value = null
    refusal.value = null
    isAsking.value = false
  }

  async function ask(): Promise<void> {
    const rule = wanted()
    if (rule === null) return
    turn += 1
    const mine = turn
    isAsking.value = true
    refusal.value = null
    try {
      const preview = await door.preview(rule)
      if (mine === turn) shown.value = { rule, preview }
    } catch (error) {
      if (mine === turn) refusal.value = error
    }
    if (mine === turn) isAsking.value = false
  }

  return { shown, refusal, isAsking, again: ask }
}
