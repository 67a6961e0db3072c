/**
 * A view may take the focus by itself, as every frame may. What somebody types into a field of ours would then be
 * typed into the view, so the field gets its focus back, and a view that goes on like this is not to be kept.
 */

/** After so long without a key, whoever is in a field may be reading, and whatever moves the focus for them goes first. */
const WRITING_MS = 30_000
/** A view may set the focus in itself now and then without meaning harm. */
const MOST_TAKEN = 3

const FIELDS = 'input, textarea, select, [contenteditable]'

/** Watches the frame until the answer is called; `graspedAgain` is called when the view did not stop. */
export function guardFocus(frame: HTMLElement, graspedAgain: () => void): () => void {
  let field: HTMLElement | null = null
  let since = 0
  let taken = 0

  function note(event: Event): void {
    const { target } = event
    // By Tab the person goes elsewhere, perhaps into the view.
    const leaves = event instanceof KeyboardEvent && event.key === 'Tab'
    field = !leaves && target instanceof HTMLElement && target.matches(FIELDS) ? target : null
    since = performance.now()
  }

  function lost(): void {
    // The page hears no pointer in the frame, so where it is has to do.
    const isTaken = document.activeElement === frame && field !== null && performance.now() - since < WRITING_MS && !frame.matches(':hover')
    if (!isTaken) return
    const given = field
    // While the focus moves, and to what had it last, browsers say that they give it and do not.
    setTimeout(() => {
      window.focus()
      given?.blur()
      given?.focus()
    })
    taken += 1
    if (taken === MOST_TAKEN) graspedAgain()
  }

  const noted = ['focusin', 'keydown', 'pointerdown'] as const
  for (const kind of noted) addEventListener(kind, note, true)
  addEventListener('blur', lost)
  return () => {
    for (const kind of noted) removeEventListener(kind, note, true)
    removeEventListener('blur', lost)
  }
}
