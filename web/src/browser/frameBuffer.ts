/** Gathers what comes in many pieces and hands it over once per frame, as a page is drawn no more often. */

export interface FrameBuffer<T> {
  add(item: T): void
  /** Hands over at once what has come. */
  flush(): void
  clear(): void
}

export function createFrameBuffer<T>(take: (items: T[]) => void): FrameBuffer<T> {
  let items: T[] = []
  let frame = 0

  function add(item: T): void {
    items.push(item)
    if (frame === 0) frame = requestAnimationFrame(flush)
  }

  function flush(): void {
    cancelAnimationFrame(frame)
    frame = 0
    if (items.length === 0) return
    const taken = items
    items = []
    take(taken)
  }

  function clear(): void {
    cancelAnimationFrame(frame)
    frame = 0
    items = []
  }

  return { add, flush, clear }
}
