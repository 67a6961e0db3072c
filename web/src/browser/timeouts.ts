/** Timers that end with the component that asked for them. */
import { onBeforeUnmount } from 'vue'

/** Acts later, unless what asked for it is gone by then. */
export function useTimeouts(): (ms: number, act: () => void) => void {
  const timers = new Set<ReturnType<typeof setTimeout>>()
  onBeforeUnmount(() => timers.forEach(clearTimeout))
  return (ms, act) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, ms)
    timers.add(timer)
  }
}
