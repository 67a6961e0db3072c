import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import TeamCompaction from './TeamCompaction.vue'

const rest = vi.hoisted(() => ({ compaction: vi.fn(), setCompaction: vi.fn(), clearCompaction: vi.fn() }))
vi.mock('@/wire/rest', () => ({ rest }))

const SETTINGS = ['delete-middle', 'delete-old']

beforeEach(() => {
  setActivePinia(createPinia())
  vi.clearAllMocks()
  rest.compaction.mockResolvedValue({ strategies: ['none'], tenant: ['none'], settings: SETTINGS })
})

async function render(isAdmin: boolean) {
  vi.spyOn(usePerson(), 'may').mockReturnValue(isAdmin)
  const wrapper = mount(TeamCompaction, { global: { plugins: [i18n] } })
  await flushPromises()
  return wrapper
}

it('asks and shows nothing where a person may not choose for the team', async () => {
  const wrapper = await render(false)
  expect(wrapper.find('select').exists()).toBe(false)
  expect(rest.compaction).not.toHaveBeenCalled()
})

it('shows what the team has, sets it, and takes it back', async () => {
  const wrapper = await render(true)
  const select = wrapper.get('select')
  expect(select.element.value).toBe('none')
  expect(select.get('option').text()).toBe('Default: Drop the middle, then the oldest turns')
  rest.setCompaction.mockResolvedValue({ strategies: ['delete-old'], tenant: ['delete-old'], settings: SETTINGS })
  await select.setValue('delete-old')
  expect(rest.setCompaction).toHaveBeenCalledWith(['delete-old'])
  await flushPromises()
  rest.clearCompaction.mockRejectedValue(new RequestError(403, { code: 'not_allowed', detail: 'not you' } as never))
  await select.setValue('')
  await flushPromises()
  expect(wrapper.get('[role=alert]').text()).toContain('not you')
})
