import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { i18n } from '@/locales'
import { loadMarkdown } from '@/markdown/engine'
import { EMPTY } from '@/session/conversation/conversation'
import { fold } from '@/session/conversation/fold'
import { useSession } from '@/session/store/session'
import { systemReady } from '@/wire/testing'
import TranscriptView from './TranscriptView.vue'

let page: VueWrapper

beforeAll(loadMarkdown)
beforeEach(() => setActivePinia(createPinia()))
afterEach(() => page.unmount())

function show() {
  page = mount(TranscriptView, { slots: { empty: '<p class="empty">empty</p>' }, attachTo: document.body, global: { plugins: [i18n] } })
  return useSession()
}

const isEmpty = () => page.find('.empty').exists()

it('is not called empty before the server has said so', async () => {
  const session = useSession()
  session.id = 'ses_1'
  show()
  expect(isEmpty()).toBe(false)
  session.ready = systemReady()
  await nextTick()
  expect(isEmpty()).toBe(true)
})

it('begins a new session with what can be done', () => {
  show()
  expect(isEmpty()).toBe(true)
})

it('shows the newest answer, leads back to the one before, and asks again only for the newest', async () => {
  const session = show()
  const at = '2026-11-23T10:00:00Z'
  const events: [string, unknown[]][] = [
    ['user:message', ['hi', {}]],
    ['agent:thinking', [{ turn: 1, iteration: 1 }]],
    ['agent:response', ['first', { turn: 1 }]],
    ['agent:thinking', [{ turn: 2, iteration: 1, retry: true }]],
  ]
  const stored = events.map(([event, args], index) => ({ seq: index + 1, at, event, args }))
  session.conversation = fold(EMPTY, stored)
  await nextTick()
  expect(page.text()).not.toContain('first')
  expect(page.text()).toContain('2 of 2')
  session.conversation = fold(session.conversation, [{ seq: 5, at, event: 'agent:response', args: ['second', { turn: 2 }] }])
  await nextTick()
  expect(page.findAll('.md').map((text) => text.text())).toEqual(['hi', 'second'])
  const again = () => page.findAll('.actions button').filter((button) => button.text() === 'Try again').length
  expect(again()).toBe(1)
  await page.get('[aria-label="The answer before"]').trigger('click')
  expect(page.findAll('.md').map((text) => text.text())).toEqual(['hi', 'first'])
  expect(page.text()).toContain('1 of 2')
  expect(again()).toBe(0)
  // Asked for again elsewhere, the one that is made is shown.
  session.conversation = fold(session.conversation, [{ seq: 6, at, event: 'agent:thinking', args: [{ turn: 3, iteration: 1, retry: true }] }])
  await nextTick()
  expect(page.text()).toContain('3 of 3')
  expect(page.findAll('.md').map((text) => text.text())).toEqual(['hi'])
  vi.restoreAllMocks()
})

it('gives back a message that is taken back to be edited, though it is gone by then', async () => {
  const session = show()
  session.unsent = [{ clientMessageId: 'm1', text: 'not like this' }]
  const unsend = vi.spyOn(session, 'unsend').mockImplementation(async () => {
    session.unsent = []
    await nextTick()
    return true
  })
  await nextTick()
  await page.get('[aria-label^="Edit"]').trigger('click')
  await vi.waitFor(() => expect(page.emitted('edit')).toEqual([['not like this', undefined]]))
  expect(unsend).toHaveBeenCalledWith('m1')
  expect(page.find('.unsent').exists()).toBe(false)
  vi.restoreAllMocks()
})
