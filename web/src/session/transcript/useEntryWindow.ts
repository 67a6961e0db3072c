/** The part of a long transcript that is drawn: a window over its entries, which follows the newest or stays. */
import { computed, ref } from 'vue'
import type { Entry } from '@/session/conversation/conversation'
import { visible, WINDOW } from '@/session/conversation/rows'

/** How far the window moves at once. */
const STEP = WINDOW / 3

export function useEntryWindow(entries: () => readonly Entry[]) {
  /** The last drawn entry, or null while the end is drawn. A key, because older pages move every index. */
  const lastDrawn = ref<string | null>(null)
  const end = computed(() => {
    if (lastDrawn.value === null) return null
    const at = entries().findLastIndex((entry) => entry.key === lastDrawn.value)
    return at < 0 ? null : at + 1
  })
  const slice = computed(() => visible(entries(), end.value))
  const isAtNewest = computed(() => slice.value.end === entries().length)

  function drawUpTo(end: number): void {
    lastDrawn.value = entries()[Math.min(end, entries().length) - 1]?.key ?? null
  }

  function drawNewest(): void {
    lastDrawn.value = null
  }

  /** What is drawn stays the same, whatever is added on either side. */
  function stay(): void {
    drawUpTo(slice.value.end)
  }

  function moveEarlier(): void {
    drawUpTo(Math.max(WINDOW, slice.value.end - STEP))
  }

  function moveLater(): void {
    const next = slice.value.end + STEP
    if (next >= entries().length) drawNewest()
    else drawUpTo(next)
  }

  /** Draws that entry with what is around it. */
  function drawAround(index: number): void {
    const end = Math.max(index + WINDOW / 2, Math.min(WINDOW, entries().length))
    if (end >= entries().length) drawNewest()
    else drawUpTo(end)
  }

  return { slice, isAtNewest, drawNewest, drawAround, stay, moveEarlier, moveLater }
}
