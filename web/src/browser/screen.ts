/** Whether the screen has room for the rail; a phone has it in a sheet. The width stands in the styles too. */
import { onBeforeUnmount, ref, type Ref } from 'vue'

const WIDE = '(min-width: 768px)'

export function useWideScreen(): Readonly<Ref<boolean>> {
  const media = matchMedia(WIDE)
  const isWide = ref(media.matches)
  const look = () => void (isWide.value = media.matches)
  media.addEventListener('change', look)
  onBeforeUnmount(() => media.removeEventListener('change', look))
  return isWide
}
