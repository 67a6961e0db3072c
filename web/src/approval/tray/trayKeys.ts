/** The keys of the tray. They count only while the focus is in it, and a held key never decides. */

export interface TrayKeys {
  /** Leaves one thing: the reader, a menu, the tray. */
  leave(): void
  move(by: 1 | -1): void
  /** What a letter would do right now; null when nothing. */
  actionOf(key: string, isShift: boolean): (() => void) | null
}

const FIELDS = 'input, textarea, select, [contenteditable]'

export function handleTrayKey(event: KeyboardEvent, keys: TrayKeys): void {
  const target = event.target instanceof HTMLElement ? event.target : null
  if (target === null || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return
  if (event.key === 'Escape') return leave(event, keys)
  if (target.closest(FIELDS) !== null) return
  // A held key must not press a button again and again.
  if (event.repeat && target.closest('[data-decides]') !== null && (event.key === 'Enter' || event.key === ' ')) event.preventDefault()
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') return move(event, target, keys)
  if (event.repeat) return
  const action = keys.actionOf(event.key.toLowerCase(), event.shiftKey)
  if (action === null) return
  event.preventDefault()
  action()
}

function leave(event: KeyboardEvent, keys: TrayKeys): void {
  event.preventDefault()
  event.stopPropagation()
  // A held key goes one step; repeated in the composer it would stop the agent.
  if (!event.repeat) keys.leave()
}

function move(event: KeyboardEvent, target: HTMLElement, keys: TrayKeys): void {
  const scrolls = target.closest<HTMLElement>('[data-scrolls]')
  if (event.shiftKey || (scrolls !== null && scrolls.scrollHeight > scrolls.clientHeight + 1)) return
  event.preventDefault()
  keys.move(event.key === 'ArrowDown' ? 1 : -1)
}
