/**
 * A long list is drawn from its end, a slice in each frame: what is read first is there at once, and no slice holds
 * the page up. What is not drawn yet is always above what is.
 */
import { nextTick, onBeforeUnmount, onMounted, ref, watch, type Ref } from 'vue'

/** Rows that fill a high screen: so many more are drawn at once. */
const SCREEN = 12
/** What a slice may take, so that on a slow machine too it stays below what is felt. */
const SLICE_MS = 8
/** Frames stand still in a hidden tab, where nobody waits for them. */
const HIDDEN_MS = 200

/** The next number of rows, by how long the last ones took. */
export function nextSlice(rows: number, tookMs: number): number {
  return Math.max(1, Math.min(rows * 2, Math.floor((rows * SLICE_MS) / Math.max(tookMs, 0.5))))
}

interface Keyed {
  key: string
}

/**
 * How many rows are not drawn yet, from the first. `draw` makes the change, and may keep the reader's place. What was
 * drawn stays so, whatever comes above it: somebody may be reading it.
 */
export function useSlices(rows: () => readonly Keyed[], draw: (change: () => void) => Promise<void>): Readonly<Ref<number>> {
  const left = ref(0)
  let run = 0

  async function fill(own: number): Promise<void> {
    // The first row comes in a task of its own, after that in which the rest of the page first stands.
    let size = 1
    while (left.value > 0) {
      await nextFrame()
      if (own !== run) return
      const began = performance.now()
      await draw(() => (left.value = Math.max(0, left.value - size)))
      size = nextSlice(size, performance.now() - began)
    }
  }

  function begin(now: readonly Keyed[], before: readonly Keyed[]): void {
    if (now.length < before.length) left.value = Math.min(left.value, now.length)
    if (now.length - before.length <= SCREEN) return
    const first = before[left.value]?.key
    const kept = first === undefined ? -1 : now.findIndex(({ key }) => key === first)
    left.value = kept < 0 ? now.length : kept
    run += 1
    void fill(run)
  }

  /** On paper there is no next frame. */
  async function drawAll(): Promise<void> {
    left.value = 0
    await nextTick()
  }

  watch(rows, begin)
  begin(rows(), [])
  onMounted(() => addEventListener('beforeprint', drawAll))
  onBeforeUnmount(() => {
    run += 1
    removeEventListener('beforeprint', drawAll)
  })
  return left
}

function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, HIDDEN_MS)
    const frame = requestAnimationFrame(done)
    function done(): void {
      clearTimeout(timer)
      cancelAnimationFrame(frame)
      // After the frame is painted, so that a slice never delays what was drawn before it.
      setTimeout(resolve)
    }
  })
}
