import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { afterEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import type { SessionAssistantItem } from '@/wire/types'
import { door } from './door'
import SessionAssistant from './SessionAssistant.vue'

enableAutoUnmount(afterEach)

it('looks for a newer version after each answer, and when somebody looks at the page again', async () => {
  let version = 1
  vi.spyOn(door, 'read').mockImplementation(async () => ({ id: 'ast_1', level: 'use', version }) as Awaited<ReturnType<typeof door.read>>)
  const assistant = { id: 'ast_1', name: 'Writer', version: 1 } as SessionAssistantItem
  const shown = mount(SessionAssistant, { props: { assistant, sessionId: 'ses_1', isRunning: false }, global: { plugins: [i18n] } })
  await flushPromises()
  expect(shown.text()).not.toContain('newer version')
  version = 2
  await shown.setProps({ isRunning: true })
  await flushPromises()
  expect(shown.text()).not.toContain('newer version')
  await shown.setProps({ isRunning: false })
  await flushPromises()
  expect(shown.text()).toContain('There is a newer version (2).')
  version = 3
  document.dispatchEvent(new Event('visibilitychange'))
  await flushPromises()
  expect(shown.text()).toContain('There is a newer version (3).')
})
