/**
 * A menu or popover that is loaded when its button is first pressed, and opens then: the library that places it and
 * holds the focus in it weighs more than the session, which most people read without opening one.
 */
import { cloneVNode, defineComponent, h, nextTick, shallowRef, type Component, type PropType } from 'vue'

export type Load = () => Promise<{ default: Component } | undefined>

export const loadMenu: Load = () => import('@nuxt/ui/components/DropdownMenu.vue')
export const loadPopover: Load = () => import('@nuxt/ui/components/Popover.vue')

export const LazyOverlay = defineComponent({
  inheritAttrs: false,
  props: {
    load: { type: Function as PropType<Load>, required: true },
    popup: { type: String as PropType<'menu' | 'dialog'>, required: true },
  },
  setup(props, { attrs, slots }) {
    const overlay = shallowRef<Component>()
    const isFirst = shallowRef(true)

    async function open(event: Event): Promise<void> {
      const button = event.currentTarget
      const loaded = await props.load()
      // A part that cannot be loaded is told by the strip.
      if (!loaded || overlay.value) return
      // The button makes place for that of the overlay. Its focus ends here, and not by its removal, which would be
      // mended; the overlay takes it next.
      if (button instanceof HTMLElement) button.blur()
      await nextTick()
      overlay.value = loaded.default
      await nextTick()
      isFirst.value = false
    }

    return () => {
      if (overlay.value) return h(overlay.value, { ...attrs, ...(isFirst.value ? { defaultOpen: true } : {}) }, slots)
      const [button] = slots.default?.() ?? []
      return button && cloneVNode(button, { onClick: open, 'aria-haspopup': props.popup, 'aria-expanded': 'false' })
    }
  },
})
