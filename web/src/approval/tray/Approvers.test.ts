import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { NOW, queueCall } from '@/approval/testing'
import { GUARD_MS } from '@/browser/inputGuard'
import { usePerson } from '@/stores/person'
import type { QueueCall } from '@/wire/types'
import type { Me } from '@/wire/restTypes'
import ApprovalTray from './ApprovalTray.vue'

let wrapper: VueWrapper<InstanceType<typeof ApprovalTray>>

beforeEach(() => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  usePerson().me = { user: { id: 'ana', name: 'Ana', role: 'member' } } as Me
})
afterEach(() => {
  wrapper.unmount()
  vi.useRealTimers()
})

async function show(change: Partial<QueueCall>): Promise<void> {
  wrapper = mount(ApprovalTray, { props: { calls: [queueCall('a', change)], now: NOW, me: 'ana' }, attachTo: document.body })
  vi.advanceTimersByTime(GUARD_MS)
  // The line is loaded when it is first wanted.
  await vi.dynamicImportSettled()
  await flushPromises()
}

function approve() {
  return wrapper.findAll('button').find((one) => one.text().startsWith('Approve once'))
}

it.each([
  ['somebody_else', 'somebody else than the owner'],
  ['role:admin', 'somebody with the role admin'],
])('says who must say yes and takes no yes that does not count: %s', async (who, words) => {
  await show({ approvers: [who] })
  expect(wrapper.text()).toContain(words)
  expect(wrapper.text()).toContain('Your yes does not count here.')
  expect(approve()?.attributes('disabled')).toBeDefined()
})

it('takes the yes of one of two, shows it, and takes it back', async () => {
  await show({ approvers: ['two'] })
  expect(approve()?.attributes('disabled')).toBeUndefined()
  await wrapper.setProps({ calls: [queueCall('a', { approvers: ['two'], consents: [{ id: 'ana', name: 'Ana' }] })] })
  vi.advanceTimersByTime(GUARD_MS)
  expect(wrapper.text()).toContain('1 so far: Ana said yes.')
  expect(approve()?.attributes('disabled')).toBeDefined()
  const back = wrapper.findAll('button').find((one) => one.text() === 'Take back')
  await back?.trigger('click')
  expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: false, takeBack: true }]])
})

it('takes a yes that counts for one of several', async () => {
  await show({ approvers: ['somebody_else', 'two'] })
  expect(approve()?.attributes('disabled')).toBeUndefined()
})

it('shows what somebody else changed beside what was asked for', async () => {
  await show({ approvers: ['owner', 'somebody_else'], args: { path: 'b.md', content: '' }, originalArgs: { path: 'a.md', content: '' }, editedBy: { id: 'bo', name: 'Bo' } })
  expect(wrapper.text()).toContain('Arguments that Bo changed, beside those that were asked for')
  expect(wrapper.get('.diff').text()).toContain('a.md')
  expect(wrapper.get('.diff').text()).toContain('b.md')
})
