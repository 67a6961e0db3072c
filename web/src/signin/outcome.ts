/** Keeps the words of a failed sign-in at a provider until the sign-in page shows them. */
import { shallowRef } from 'vue'

export const lastProblem = shallowRef('')

/** Takes the words, so that they are shown once. */
export function takeProblem(): string {
  const words = lastProblem.value
  lastProblem.value = ''
  return words
}
