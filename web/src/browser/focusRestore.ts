/** Focus that was inside and lost its element goes to a given place, never to `body`. */
import { onBeforeUnmount, onMounted, type Ref } from 'vue'

export function useFocusRestore(root: Ref<HTMLElement | undefined>, restore: () => void): void {
  let last: Element | null = null
  let observer: MutationObserver | undefined

  function onFocusIn(event: FocusEvent): void {
    last = event.target instanceof Element ? event.target : null
  }

  function onFocusOut(event: FocusEvent): void {
    const next = event.relatedTarget
    if (next instanceof Node) {
      if (root.value?.contains(next) !== true) last = null
      return
    }
    // Without a next element it was either removed, or the person clicked beside it.
    const left = event.target
    queueMicrotask(() => {
      if (left === last && left instanceof Node && left.isConnected) last = null
      else restoreIfLost()
    })
  }

  function restoreIfLost(): void {
    if (last === null || last.isConnected) return
    const focused = document.activeElement
    if (focused !== null && focused !== document.body && focused !== last) return
    last = null
    restore()
  }

  onMounted(() => {
    const element = root.value
    if (element === undefined) return
    element.addEventListener('focusin', onFocusIn)
    element.addEventListener('focusout', onFocusOut)
    observer = new MutationObserver(restoreIfLost)
    observer.observe(element, { childList: true, subtree: true })
  })
  onBeforeUnmount(() => {
    observer?.disconnect()
    if (root.value?.contains(document.activeElement) === true) restore()
  })
}
