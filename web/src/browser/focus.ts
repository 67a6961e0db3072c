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
