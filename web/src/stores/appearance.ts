/** Theme, density and the send key: choices of this browser, set on the root element. */
import { ref, watch } from 'vue'
import { recall, remember } from '@/browser/storage'

export type Theme = 'system' | 'light' | 'dark'
export type Density = 'compact' | 'comfortable'
export type SendKey = 'enter' | 'ctrl-enter'
export type Reading = 'whole' | 'sentence' | 'silent'

function oneOf<T extends string>(key: string, values: readonly [T, ...T[]]): T {
  const stored = recall(key)
  return values.find((value) => value === stored) ?? values[0]
}

export const theme = ref<Theme>(oneOf('theme', ['system', 'light', 'dark']))
export const density = ref<Density>(oneOf('density', ['compact', 'comfortable']))
export const sendKey = ref<SendKey>(oneOf('send-key', ['enter', 'ctrl-enter']))
/** How much of a finished answer is read aloud. */
export const reading = ref<Reading>(oneOf('reading', ['whole', 'sentence', 'silent']))

export function applyAppearance(): void {
  const system = matchMedia('(prefers-color-scheme: dark)')
  const paint = () => {
    const isDark = theme.value === 'dark' || (theme.value === 'system' && system.matches)
    document.documentElement.classList.toggle('dark', isDark)
    document.documentElement.classList.toggle('comfortable', density.value === 'comfortable')
  }
  system.addEventListener('change', paint)
  watch([theme, density], paint, { immediate: true })
  watch(theme, (value) => remember('theme', value))
  watch(density, (value) => remember('density', value))
  watch(sendKey, (value) => remember('send-key', value))
  watch(reading, (value) => remember('reading', value))
}
