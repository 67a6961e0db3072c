import { mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { newest, settled, systemReady } from '@/wire/testing'
import WindowChoice from './WindowChoice.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

it('says so when nothing was changed because there is no connection', async () => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  const session = useSession()
  session.open('ses_1')
  const { state } = systemReady()
  const context = { used: 1, window: 2, leftOut: { messages: 1, fromSeq: null, wholeReadsMore: true } }
  await newest().ready({ state: { ...state, usage: { ...state.usage, context } } })
  await newest().lose()
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
  const choice = mount(WindowChoice, { global: { plugins: [i18n, router] } })
  await choice.get('button').trigger('click')
  await settled()
  expect(choice.get('[role=alert]').text()).toBe('Nothing was changed: there is no connection.')
  choice.unmount()
  session.close()
  vi.useRealTimers()
})
