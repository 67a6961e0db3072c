import { mount, RouterLinkStub } from '@vue/test-utils'
import { expect, it, vi } from 'vitest'
import ActionButton from './ActionButton.vue'

vi.mock('vue-router', () => ({ RouterLink: RouterLinkStub }))

it('is a button that submits nothing by itself, with its icon hidden from screen readers', () => {
  const page = mount(ActionButton, { props: { variant: 'ghost', icon: 'i-lucide-copy' }, slots: { default: () => 'Copy' } })
  expect(page.element.tagName).toBe('BUTTON')
  expect(page.attributes('type')).toBe('button')
  expect(page.get('svg').attributes('aria-hidden')).toBe('true')
  expect(page.get('svg').html()).toContain('path')
  expect(page.text()).toBe('Copy')
})

it('is a link where it leads somewhere', () => {
  const page = mount(ActionButton, { props: { variant: 'outline', to: '/servers' }, slots: { default: () => 'Servers' } })
  expect(page.element.tagName).toBe('A')
  expect(page.getComponent(RouterLinkStub).props('to')).toBe('/servers')
})
