import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { politeText } from '@/ui/announcer'
import { newest, no, settled, systemReady } from '@/wire/testing'
import type { SystemReady } from '@/wire/types'
import FreshContext from './FreshContext.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })

let control: VueWrapper

async function open(change: Partial<SystemReady['state']> = {}): Promise<void> {
  useSession().open('ses_1')
  await newest().ready({ state: { ...systemReady().state, ...change } })
  control = mount(FreshContext, { global: { plugins: [i18n, router] } })
}

async function press(): Promise<void> {
  await control.get('button').trigger('click')
  await settled()
}

const refusal = () => control.find('[role=alert]')

beforeEach(() => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  politeText.value = ''
})
afterEach(() => {
  control.unmount()
  useSession().close()
  vi.useRealTimers()
})

it('says what it does, begins a new context, and says so aloud', async () => {
  await open()
  expect(control.get('button').text()).toBe('Start with fresh context')
  expect(control.text()).toContain('The transcript stays.')
  await press()
  expect(newest().last).toMatchObject({ command: 'history:reset', payload: {} })
  expect(control.emitted('begun')).toBe(undefined)
  await newest().last.answer({ ok: true, seq: 1 })
  expect(control.emitted('begun')).toHaveLength(1)
  expect(politeText.value).toBe('New context. The model no longer sees what is above.')
  expect(refusal().exists()).toBe(false)
})

it('sends nothing while the agent works, and says what to do first', async () => {
  await open({ running: { turn: 1, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: '', since: '2026-01-01T00:00:00Z' } })
  await press()
  expect(newest().sent).toEqual([])
  expect(refusal().text()).toBe('The agent is working. Stop it first.')
})

it('says why there is no new context', async () => {
  await open()
  await press()
  await newest().last.answer(no('nothing_to_do', 'a turn is running; stop it first'))
  expect(refusal().text()).toBe('The context stays as it is: a turn is running; stop it first')
  await newest().lose()
  await press()
  expect(refusal().text()).toBe('The context stays as it is: there is no connection.')
  expect(control.emitted('begun')).toBe(undefined)
})
