/** Nothing is decided by a key or click that was on its way before the card was there. */
import { onBeforeUnmount, onMounted, type Ref } from 'vue'

export const GUARD_MS = 400

export interface InputGuard {
  /** Something appeared, changed or moved: decisions do nothing for a moment. */
  touch(): void
  isArmed(): boolean
}

export function createInputGuard(now: () => number = () => performance.now()): InputGuard {
  let changedAt = now()
  return {
    touch: () => void (changedAt = now()),
    isArmed: () => now() - changedAt >= GUARD_MS,
  }
}

/** Also touched when the tray or what stands around it changes its size, as then the buttons move. */
export function useInputGuard(root: Ref<HTMLElement | undefined>): InputGuard {
  const guard = createInputGuard()
  let observer: ResizeObserver | undefined
  onMounted(() => {
    window.addEventListener('resize', guard.touch)
    const element = root.value
    if (element === undefined || typeof ResizeObserver === 'undefined') return
    observer = new ResizeObserver(() => guard.touch())
    for (const near of [element, element.previousElementSibling, element.nextElementSibling]) if (near !== null) observer.observe(near)
  })
  onBeforeUnmount(() => {
    window.removeEventListener('resize', guard.touch)
    observer?.disconnect()
  })
  return guard
}
