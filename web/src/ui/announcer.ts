/** The two live regions of the page. Tokens never go through them, only whole sentences. */
import { ref } from 'vue'

export const politeText = ref('')
export const assertiveText = ref('')

/** A second equal sentence would not be read, so it gets a trailing no-break space. */
function renew(old: string, text: string): string {
  return old === text ? `${text}\u00a0` : text
}

export function announce(text: string): void {
  politeText.value = renew(politeText.value, text)
}

export function alertAloud(text: string): void {
  assertiveText.value = renew(assertiveText.value, text)
}
