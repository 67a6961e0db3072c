/**
 * Keys of an input method that has not finished its word (Chinese, Japanese, Korean and others) belong to it alone:
 * the Enter that takes a word must not send, choose or close anything. Safari says so by the key code 229 after it has
 * ended the composition.
 */
const OF_INPUT_METHOD = 229

export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === OF_INPUT_METHOD
}

/**
 * Keeps such keys from every handler of the page, those of libraries too: it hears each key before them. What the
 * browser itself does with the key stays.
 */
export function keepComposingKeys(): () => void {
  const hear = (event: KeyboardEvent) => {
    if (isComposing(event)) event.stopImmediatePropagation()
  }
  window.addEventListener('keydown', hear, { capture: true })
  return () => window.removeEventListener('keydown', hear, { capture: true })
}
