/** Whether the tray is a sheet: on a phone, upright or lying. */
import { onBeforeUnmount, onMounted, ref, type Ref } from 'vue'

const NARROW = '(max-width: 640px), (max-height: 480px)'

export function useNarrow(): Ref<boolean> {
  const isNarrow = ref(false)
  const media = typeof matchMedia === 'function' ? matchMedia(NARROW) : undefined
  const look = () => void (isNarrow.value = media?.matches ?? false)
  onMounted(() => {
    look()
    media?.addEventListener('change', look)
  })
  onBeforeUnmount(() => media?.removeEventListener('change', look))
  return isNarrow
}
