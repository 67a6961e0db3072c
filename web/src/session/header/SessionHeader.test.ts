import { mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { openTab } from '@/stores/panels'
import { newest, settled, systemReady } from '@/wire/testing'
import type { SessionUsage } from '@/wire/types'
import { contextParts } from './ContextParts.vue'
import SessionHeader from './SessionHeader.vue'
import { contextShare, contextTitle, contextWords, costWords } from './ContextGauge.vue'
import WindowChoice from './WindowChoice.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })

beforeEach(() => setActivePinia(createPinia()))
afterEach(() => document.body.replaceChildren())

it('opens the panel with the context, and closes it again', async () => {
  const header = mount(SessionHeader, { attachTo: document.body, global: { plugins: [i18n, router] } })
  const details = header.findAll('button').find((button) => button.text() === 'Details')
  await details?.trigger('click')
  expect([openTab.value, details?.attributes('aria-expanded')]).toEqual(['context', 'true'])
  await details?.trigger('click')
  expect([openTab.value, details?.attributes('aria-expanded')]).toEqual([null, 'false'])
  header.unmount()
})

it.each<[string, Partial<SessionUsage>]>([
  ['', {}],
  ['$0.50', { totalCost: 0.5 }],
  ['price unknown', { unpricedRequests: 1 }],
  ['$0.00 of $2.00', { budget: 2 }],
])('says %j of the cost, and never that nothing was spent', (words, usage) => {
  useSession().usage = { totalTokens: 1, totalCost: 0, budget: null, context: { used: 1, window: null }, seq: 1, ...usage }
  const header = mount(SessionHeader, { global: { plugins: [i18n, router] } })
  expect(header.find('.cost').exists() ? header.get('.cost').text() : '').toBe(words)
  header.unmount()
})

describe('the window', () => {

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
    expect(choice.get('[role=alert]').text()).toBe('Nothing was changed: you are offline.')
    choice.unmount()
    session.close()
    vi.useRealTimers()
  })
})

describe('the usage', () => {
  describe('the context', () => {
    it('is told with the window where that is known', () => {
      expect(contextWords({ used: 1_234, window: 128_000 })).toBe('1.2K of 128K tokens')
      expect(contextShare({ used: 64_000, window: 128_000 })).toBe(0.5)
      expect(contextShare({ used: 200_000, window: 128_000 })).toBe(1)
    })

    it('says that a window is only assumed', () => {
      const context = { used: 1_234, window: 32_768, windowAssumed: true }
      expect(contextWords(context)).toBe('1.2K of 32.8K tokens (assumed)')
      expect(contextTitle(context)).toContain('assumes 32,768 tokens')
      expect(contextTitle({ ...context, windowAssumed: false })).toBe('1.2K of 32.8K tokens')
    })

    it.each([null, 0])('is told alone, without a gauge, for a window of %s', (window) => {
      expect(contextWords({ used: 18, window })).toBe('18 tokens')
      expect(contextShare({ used: 18, window })).toBeNull()
    })
  })

  describe('the cost', () => {
    const cost = (usage: Partial<SessionUsage>) =>
      costWords({ totalTokens: 1, totalCost: 0, budget: null, context: { used: 1, window: null }, seq: 1, ...usage })

    it('is what was paid', () => {
      expect(cost({ totalCost: 1.5 })).toBe('$1.50')
      expect(cost({ totalCost: 1.5, budget: 3 })).toBe('$1.50 of $3.00')
      expect(cost({})).toBe('$0.00')
    })

    it('is never nothing where a price is not known', () => {
      expect(cost({ unpricedRequests: 2 })).toBe('price unknown')
      expect(cost({ totalCost: null })).toBe('price unknown')
      expect(cost({ totalCost: 1.5, unpricedRequests: 1 })).toBe('at least $1.50')
    })
  })

  it('tells the parts of the last request, servers and sources one by one, and nothing of an old journal', () => {
    const parts = { system: 1_200, tools: { sandbox: 800, web: 0 }, context: { 'AGENTS.md': 90 }, history: 0, results: 30, message: 5, attachments: 0, reasoning: 0 }
    const context = { used: 1, window: null, request: { provider: 'p', model: 'm', parts } }
    expect(contextParts(context)).toEqual([
      { name: 'System prompt', tokens: 1_200 },
      { name: 'Tool definitions: sandbox', tokens: 800 },
      { name: 'Added context: AGENTS.md', tokens: 90 },
      { name: 'Tool results', tokens: 30 },
      { name: 'Newest message', tokens: 5 },
    ])
    expect(contextParts({ used: 1, window: null })).toEqual([])
  })
})
