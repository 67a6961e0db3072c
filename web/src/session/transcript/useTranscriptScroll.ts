/**
 * The scrolling of a transcript: it follows its end only while the end is in view, and what is drawn or opened above
 * never moves the line that is being read.
 */
import { nextTick, onBeforeUnmount, onMounted, ref, type Ref } from 'vue'

/** How close to an edge the next part is fetched, in pixels. */
const NEAR = 400
/** How far the end may be away to count as in view: less than one line. */
const AT_END = 12

/** What is beyond the edges of what is drawn. */
interface Edges {
  hasEarlier(): boolean
  /** Whether the newest entry is drawn: only then there is an end to follow. */
  isAtNewest(): boolean
  earlier(): Promise<void>
  later(): Promise<void>
}

export function useTranscriptScroll(scroller: Readonly<Ref<HTMLElement | null>>, content: Readonly<Ref<HTMLElement | null>>, edges: Edges) {
  const isFollowing = ref(true)
  let lastTop = 0
  /** What is drawn is changing; until that is done, scrolling is ours. */
  let isShifting = false
  let isHeld = false
  /** Room below the end, so that what shrinks above it moves nothing; it goes as the person scrolls up. */
  let floor = 0
  const observer = new ResizeObserver(stayAtEnd)

  onMounted(() => {
    if (scroller.value) observer.observe(scroller.value)
    if (content.value) observer.observe(content.value)
    stickToEnd()
  })
  onBeforeUnmount(() => observer.disconnect())

  function stickToEnd(): void {
    if (!scroller.value) return
    scroller.value.scrollTop = scroller.value.scrollHeight
    lastTop = scroller.value.scrollTop
  }

  /** Keeps the end in view while it is followed, unless something else moves what is drawn. */
  function stayAtEnd(): void {
    if (isFollowing.value && !isShifting && !isHeld) stickToEnd()
  }

  function followAgain(): void {
    keepRoom(0)
    isFollowing.value = true
    void nextTick(stickToEnd)
  }

  function keepRoom(height: number): void {
    floor = height
    if (content.value) content.value.style.minHeight = height > 0 ? `${height}px` : ''
  }

  /** What a person opens, closes or switches stays where it is, and ends the following when the end leaves the view. */
  function hold({ target }: Event): void {
    const box = scroller.value
    const control = target instanceof Element ? target.closest<HTMLElement>('button, summary') : null
    if (!box || !control || isShifting) return
    const top = control.getBoundingClientRect().top
    isHeld = true
    keepRoom(box.scrollTop + box.clientHeight)
    // After the frame is laid out, and before the observer looks at it.
    requestAnimationFrame(() => {
      isHeld = false
      if (control.isConnected) box.scrollTop += control.getBoundingClientRect().top - top
      lastTop = box.scrollTop
      if (heightBelow(box) > AT_END) isFollowing.value = false
    })
  }

  /** Whether somebody has scrolled up and away from the end since the place was noted last. */
  function hasLeftEnd(box: HTMLElement): boolean {
    return box.scrollTop < lastTop - 1 && heightBelow(box) > AT_END
  }

  function onScroll(): void {
    const box = scroller.value
    if (!box || isShifting) return
    if (floor > 0) keepRoom(Math.min(floor, box.scrollTop + box.clientHeight))
    const top = box.scrollTop
    const below = heightBelow(box)
    if (hasLeftEnd(box)) isFollowing.value = false
    else if (below <= AT_END && edges.isAtNewest()) isFollowing.value = true
    lastTop = top
    if (isFollowing.value) return
    if (top < NEAR && edges.hasEarlier()) void edges.earlier()
    else if (below < NEAR && !edges.isAtNewest()) void edges.later()
  }

  /** The wheel is heard before the scroll it causes, so that a frame of streaming text cannot pull back down. */
  function onWheel(event: WheelEvent): void {
    const box = scroller.value
    if (box && event.deltaY < 0 && box.scrollTop > 0) isFollowing.value = false
  }

  /** Waits for a change of what could be drawn, which draws nothing by itself. */
  async function whileShifting(change: () => Promise<void>): Promise<void> {
    isShifting = true
    await change()
    isShifting = false
  }

  /**
   * Whether the end is followed, and nobody has scrolled up since: what is drawn before the event of that comes, a frame
   * later, would move what they see. In a hidden tab nobody scrolls, and no frame keeps the end in view.
   */
  function follows(): boolean {
    const box = scroller.value
    if (box && !isShifting && !document.hidden && hasLeftEnd(box)) isFollowing.value = false
    return isFollowing.value
  }

  /** Changes what is drawn, with the end in view before and after. */
  async function follow(change: () => void): Promise<void> {
    change()
    await nextTick()
    stayAtEnd()
  }

  /** Changes what is drawn and puts the entry that was at the top back where it was. */
  async function shift(change: () => void): Promise<void> {
    const box = scroller.value
    if (!box || isShifting) return
    isShifting = true
    const anchor = firstInView(box)
    const offset = anchor?.getBoundingClientRect().top ?? 0
    const key = anchor?.dataset.key
    change()
    await nextTick()
    const again = key === undefined ? null : box.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)
    if (again) box.scrollTop += again.getBoundingClientRect().top - offset
    lastTop = box.scrollTop
    requestAnimationFrame(() => (isShifting = false))
  }

  return { isFollowing, isShifting: () => isShifting, follow, follows, followAgain, hold, onScroll, onWheel, shift, whileShifting }
}

/** How much of the content is below what is in view, in pixels. */
function heightBelow(box: HTMLElement): number {
  return box.scrollHeight - box.scrollTop - box.clientHeight
}

function firstInView(box: HTMLElement): HTMLElement | undefined {
  const top = box.getBoundingClientRect().top
  return [...box.querySelectorAll<HTMLElement>('[data-key]')].find((row) => row.getBoundingClientRect().bottom > top)
}
