/** What the screen has room for. The widths stand in the styles too. */
import { onBeforeUnmount, onMounted, ref, type Ref } from 'vue'

const WIDE = '(min-width: 768px)'
const NARROW = '(max-width: 640px), (max-height: 480px)'

/** Whether there is room for the rail; a phone has it in a sheet. */
export function useWideScreen(): Readonly<Ref<boolean>> {
  const media = matchMedia(WIDE)
  const isWide = ref(media.matches)
  const look = () => void (isWide.value = media.matches)
  media.addEventListener('change', look)
  onBeforeUnmount(() => media.removeEventListener('change', look))
  return isWide
}

/** Whether the tray is a sheet: on a phone, upright or lying. */
export function useNarrowScreen(): Ref<boolean> {
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
