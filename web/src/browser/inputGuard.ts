/** Nothing is decided by a key or click that was on its way before the card was there. */
import { onBeforeUnmount, onMounted, ref, type Ref } from 'vue'

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

/** A guard that buttons can show: they are drawn as inactive while a press would do nothing. */
export interface ShownGuard extends InputGuard {
  readonly isSettled: Readonly<Ref<boolean>>
}

/** Also touched when the tray or what stands around it changes its size, as then the buttons move. */
export function useInputGuard(root: Ref<HTMLElement | undefined>): ShownGuard {
  const guard = createInputGuard()
  const isSettled = ref(false)
  let observer: ResizeObserver | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  function touch(): void {
    guard.touch()
    isSettled.value = false
    clearTimeout(timer)
    timer = setTimeout(() => (isSettled.value = true), GUARD_MS)
  }
  touch()
  onMounted(() => {
    window.addEventListener('resize', touch)
    const element = root.value
    if (element === undefined || typeof ResizeObserver === 'undefined') return
    observer = new ResizeObserver(touch)
    for (const near of [element, element.previousElementSibling, element.nextElementSibling]) if (near !== null) observer.observe(near)
  })
  onBeforeUnmount(() => {
    window.removeEventListener('resize', touch)
    clearTimeout(timer)
    observer?.disconnect()
  })
  return { touch, isArmed: guard.isArmed, isSettled }
}
