/** A diagram, whose program comes with the first one; its source until then. */
import { defineComponent, h, onMounted, shallowRef, type Component } from 'vue'

const drawn = shallowRef<Component | null>(null)

export default defineComponent({
  props: { source: { type: String, required: true }, isWhole: { type: Boolean, required: true } },
  setup(props, { slots }) {
    onMounted(async () => {
      drawn.value ??= await import('./DiagramBlock.vue').then(
        (module) => module.default,
        () => null,
      )
    })
    return () => (drawn.value === null ? slots.default?.() : h(drawn.value, { ...props }, slots))
  },
})
