import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { EMPTY } from '@/session/conversation/conversation'
import { withRunning } from '@/session/conversation/streaming'
import { useSession } from '@/session/store/session'
// Loaded beforehand, as the chunk that a person would wait for.
import '@nuxt/ui/components/Popover.vue'
import SessionHeader from './SessionHeader.vue'

const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })

beforeEach(() => setActivePinia(createPinia()))
afterEach(() => document.body.replaceChildren())

const turn = { turn: 1, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: '', since: '2026-01-01T00:00:00Z' } as const

it.each([
  ['before anything was said', EMPTY],
  ['while the agent works', withRunning(EMPTY, turn)],
])('offers a fresh context in the details %s', async (_, conversation) => {
  useSession().conversation = conversation
  const header = mount(SessionHeader, { attachTo: document.body, global: { plugins: [i18n, router] } })
  const details = header.findAll('button').find((button) => button.text() === 'Details')
  await details?.trigger('click')
  await flushPromises()
  await vi.waitFor(() => expect(document.body.textContent).toContain('Start with fresh context'))
  header.unmount()
})
