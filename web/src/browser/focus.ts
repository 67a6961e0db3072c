import { onBeforeUnmount, onMounted, type Ref } from 'vue'

/** Where the focus goes when what had it is gone and nothing beside it is nearer: never to `body`. */
export function focusPage(): void {
  const message = document.getElementById('message')
  // On a phone the field would raise the keyboard, for which nobody asked.
  if (message && !matchMedia('(pointer: coarse)').matches) return message.focus()
  const main = document.querySelector<HTMLElement>('main')
  if (!main) return
  // Until the focus moves on: a place that always takes it would take it at each click on plain text.
  main.tabIndex = -1
  main.addEventListener('blur', () => main.removeAttribute('tabindex'), { once: true })
  main.focus({ preventScroll: true })
}

// Restores the focus: when the focused element goes, the focus moves to a given place, never to `body`.

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
