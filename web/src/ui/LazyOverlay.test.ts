import { flushPromises, mount } from '@vue/test-utils'
import { expect, it, vi } from 'vitest'
import { defineComponent, h } from 'vue'
import { LazyOverlay } from './LazyOverlay'

const Overlay = defineComponent({
  props: { defaultOpen: Boolean },
  setup: (props, { slots }) => () => h('div', { class: 'overlay', 'data-open': props.defaultOpen }, slots.default?.()),
})

function show(load: () => Promise<{ default: typeof Overlay } | undefined>) {
  return mount(LazyOverlay, { props: { load, popup: 'menu' }, slots: { default: () => h('button', 'more') }, attachTo: document.body })
}

it('loads the overlay with the first press, and opens it', async () => {
  const load = vi.fn(async () => ({ default: Overlay }))
  const page = show(load)
  const button = page.get('button')
  expect(button.attributes()).toMatchObject({ 'aria-haspopup': 'menu', 'aria-expanded': 'false' })
  expect(load).not.toHaveBeenCalled()
  await button.trigger('click')
  await flushPromises()
  expect(page.get('.overlay').text()).toBe('more')
  page.unmount()
})

it('stays a button while the overlay cannot be loaded', async () => {
  const page = show(async () => undefined)
  await page.get('button').trigger('click')
  await flushPromises()
  expect(page.find('.overlay').exists()).toBe(false)
  expect(page.get('button').text()).toBe('more')
  page.unmount()
})
