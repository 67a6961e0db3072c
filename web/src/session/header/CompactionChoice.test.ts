import { mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { newest, systemReady } from '@/wire/testing'
import CompactionChoice from './CompactionChoice.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

it('shows what the session chose, and takes another choice at once', async () => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  const session = useSession()
  session.open('ses_1')
  await newest().ready({ ...systemReady(), compaction: ['delete-old', 'delete-middle'] })
  const choose = vi.spyOn(session, 'chooseCompaction').mockResolvedValue({ ok: true })
  const choice = mount(CompactionChoice, { global: { plugins: [i18n] } })
  const select = choice.get('select')
  expect(select.element.selectedOptions[0]?.text).toBe('delete-old, delete-middle')
  expect(select.findAll('option')).toHaveLength(6)
  await select.setValue('delete-middle')
  expect(choose).toHaveBeenCalledWith(['delete-middle'])
  await select.setValue('')
  expect(choose).toHaveBeenLastCalledWith([])
  choice.unmount()
  session.close()
  vi.useRealTimers()
})
