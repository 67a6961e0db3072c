// @vitest-environment happy-dom
import { mount } from '@vue/test-utils'
import { createPinia } from 'pinia'
import { expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import TroubleStrip from '@/session/TroubleStrip.vue'
import { isNewVersionReady, noteVersion } from './version'

it('offers to reload once the server says another version, and never reloads by itself', async () => {
  const reload = vi.spyOn(location, 'reload').mockImplementation(() => {})
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: { render: () => null } }] })
  const page = mount(TroubleStrip, { attachTo: document.body, global: { plugins: [createPinia(), i18n, router] } })

  noteVersion('0.1.0')
  noteVersion('0.1.0')
  await nextTick()
  expect(isNewVersionReady.value).toBe(false)
  expect(page.text()).toBe('')

  noteVersion('0.2.0')
  // Another gateway that is still the old one takes nothing back.
  noteVersion('0.1.0')
  await nextTick()
  expect(page.text()).toContain('A new version is here.')
  expect(reload).not.toHaveBeenCalled()

  const button = page.get<HTMLButtonElement>('button')
  expect(button.text()).toBe('Reload')
  button.element.focus()
  expect(document.activeElement).toBe(button.element)
  await button.trigger('click')
  expect(reload).toHaveBeenCalledOnce()
  page.unmount()
})
