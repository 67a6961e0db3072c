/**
 * The start of a page in small tasks: a slow phone paints between them, and hears the person. Once a part has been
 * mounted it is there, and is mounted again at once.
 */
import { defineAsyncComponent, onBeforeUnmount, onScopeDispose, shallowRef, watch, type Component, type Ref } from 'vue'

/** Not in every browser yet. */
interface Scheduler {
  yield?: () => Promise<void>
}

/** Ends the current task; what follows runs in one of its own, before what is asked for later. */
export function nextTask(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: Scheduler }
  return scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve))
}

/** Waits until what has changed by now is on the screen. */
export function painted(): Promise<void> {
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
}

/** Acts while the browser has nothing else to do; where it cannot say so, in a task of its own. */
export function whenIdle(act: () => void): void {
  if ('requestIdleCallback' in globalThis) requestIdleCallback(act)
  else setTimeout(act)
}

/** The component, mounted in a task of its own the first time that it is needed. */
export function inOwnTask<T extends Component>(component: T): T {
  return defineAsyncComponent(async () => {
    await nextTask()
    return component
  }) as unknown as T
}

/** What `source` gives, a task later: for facts that nobody looks at first. */
export function aTaskLater<T>(source: () => T): Readonly<Ref<T>> {
  const value = shallowRef(source())
  let isGone = false
  watch(source, async () => {
    await nextTask()
    if (!isGone) value.value = source()
  })
  onScopeDispose(() => (isGone = true))
  return value
}

// Timers that end with the component that asked for them.

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
