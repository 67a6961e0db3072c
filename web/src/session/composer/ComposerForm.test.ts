import { mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { recall } from '@/browser/storage'
import { i18n } from '@/locales'
import { EMPTY } from '@/session/conversation/conversation'
import { withRunning } from '@/session/conversation/streaming'
import { useSession } from '@/session/store/session'
import { usePerson } from '@/stores/person'
import ComposerForm from './ComposerForm.vue'

beforeEach(() => setActivePinia(createPinia()))

afterEach(() => localStorage.clear())

it('keeps what was typed while it is not known, or no longer, who types', async () => {
  const person = usePerson()
  const page = mount(ComposerForm, { attachTo: document.body, global: { plugins: [i18n] } })
  const field = page.get('textarea')
  await field.setValue('half a sentence')
  person.me = { user: { id: 'ana' } } as never
  await nextTick()
  expect(field.element.value).toBe('half a sentence')
  expect([recall('draft..new'), recall('draft.ana.new')]).toEqual([null, 'half a sentence'])
  person.lost()
  await nextTick()
  expect(field.element.value).toBe('half a sentence')
  person.me = { user: { id: 'bo' } } as never
  await nextTick()
  expect(field.element.value).toBe('')
  expect(recall('draft.ana.new')).toBe('half a sentence')
  page.unmount()
})

it('stops by Escape twice, never by Escape that is held', async () => {
  const session = useSession()
  session.conversation = withRunning(EMPTY, { turn: 1, iteration: 1, attempt: 1, phase: 'model', text: '', reasoning: '', since: '2026-11-23T10:00:00Z' })
  const stop = vi.spyOn(session, 'stop').mockResolvedValue({ ok: true })
  const page = mount(ComposerForm, { attachTo: document.body, global: { plugins: [i18n] } })
  const field = page.get('textarea')
  await field.trigger('keydown', { key: 'Escape' })
  for (let n = 0; n < 5; n++) await field.trigger('keydown', { key: 'Escape', repeat: true })
  expect(stop).not.toHaveBeenCalled()
  await field.trigger('keydown', { key: 'Escape' })
  expect(stop).toHaveBeenCalledOnce()
  page.unmount()
})
