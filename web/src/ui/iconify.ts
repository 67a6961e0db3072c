/**
 * Icons come from the bundle only. The library that Nuxt UI draws them with would bring its own loader of icons from
 * other servers, 18 kB that run at every start; this draws what was scanned at build time, and can reach nothing.
 */
import { init, type BundledIcon } from 'virtual:nuxt-ui-icons'
import { computed, defineComponent, h } from 'vue'

/** Of an icon that says no other size. */
const SIDE = 16

const icons = new Map<string, BundledIcon>()
init((name, data) => {
  icons.set(name, data)
  return true
})

export function iconLoaded(name: string): boolean {
  return icons.has(name)
}

/** `lucide:copy`, as Nuxt UI names it, or `lucide-copy`. */
export const Icon = defineComponent({
  props: { icon: { type: String, required: true } },
  setup(props) {
    const data = computed(() => icons.get(props.icon) ?? icons.get(props.icon.replace('-', ':')))
    return () =>
      h('svg', {
        xmlns: 'http://www.w3.org/2000/svg',
        'aria-hidden': 'true',
        width: '1em',
        height: '1em',
        viewBox: `0 0 ${data.value?.width ?? SIDE} ${data.value?.height ?? SIDE}`,
        // From a package at build time, never from a model or a person.
        innerHTML: data.value?.body ?? '',
      })
  },
})
