/**
 * Where a view is shown: in the column, or over the whole page. A view that fills the page could look like the page
 * itself, so it does that only by the act of a person, and the page's own line stays above it.
 */
import { nextTick, ref } from 'vue'
import type { DisplayMode } from './surroundings'

export function useDisplayMode(frame: () => HTMLElement | null, changed: () => void) {
  const mode = ref<DisplayMode>('inline')
  /** Whether the view can fill the page, by its own word. */
  const mayFill = ref(false)

  function declare(modes: unknown): void {
    mayFill.value = Array.isArray(modes) && modes.includes('fullscreen')
  }

  async function show(wanted: DisplayMode): Promise<void> {
    if (mode.value === wanted) return
    mode.value = wanted
    await nextTick()
    changed()
  }

  /** What the view wants; the answer is what it gets. It may always go back. */
  async function display(wanted: unknown): Promise<DisplayMode> {
    if (wanted === 'inline') await show('inline')
    else if (wanted === 'fullscreen' && mayFill.value && isUsed()) await show('fullscreen')
    return mode.value
  }

  /** Whether the person is in the view, and has just pressed something: a view can take the focus by itself, but not that. */
  function isUsed(): boolean {
    const { userActivation } = navigator as { userActivation?: { isActive: boolean } }
    return document.activeElement === frame() && userActivation?.isActive !== false
  }

  return { mode, mayFill, declare, display, show }
}
