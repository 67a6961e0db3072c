/** KaTeX comes with the first formula; a chunk that cannot be loaded leaves formulas as they are written. */
import { shallowRef } from 'vue'
import type { MathElement } from './typeset'

/** Null until it is there. */
export const typesetter = shallowRef<((tex: string, isBlock: boolean) => MathElement | null) | null>(null)
let loading: Promise<void> | null = null

export function loadTypesetter(): Promise<void> {
  loading ??= import('./typeset')
    .then((module) => {
      typesetter.value = module.typeset
    })
    .catch(() => {
      loading = null
    })
  return loading
}
