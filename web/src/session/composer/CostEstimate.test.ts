import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { EMPTY, type SaidEntry } from '@/session/conversation/conversation'
import { useSession } from '@/session/store/session'
import CostEstimate, { cachedShare, draftTokens, inputCost, priceFor } from './CostEstimate.vue'

const asked = vi.hoisted(() => ({ times: 0 }))
vi.mock('@/wire/rest', () => ({
  rest: {
    models: async () => {
      asked.times += 1
      const prices = [{ above: 0, input: 10, output: 50, cached: 1 }]
      return { models: [{ id: 'dear', provider: 'p', prices }, { id: 'odd', provider: 'p', prices: [] }], problems: [] }
    },
  },
}))

const answer: SaidEntry = {
  kind: 'said', key: 'a', seq: 2, at: '', text: '', reasoning: '', reasoningMs: null, role: 'answer',
  spent: { model: 'dear', provider: 'p', usage: { inputTokens: 100, cachedTokens: 50 }, cost: 0.25, durationMs: 1, firstTokenMs: 1, finish: 'stop' },
}

beforeEach(() => {
  setActivePinia(createPinia())
  asked.times = 0
})

/** A session of that model, of which the next request takes 100,000 tokens. */
function open(model: string, provider = 'p', nextInput: number | null = 100_000) {
  const session = useSession()
  session.conversation = { ...EMPTY, model, provider, entries: [answer] }
  session.usage = { totalTokens: 1, totalCost: 0, budget: null, context: { used: 1, window: null, nextInput }, seq: 1 }
  return mount(CostEstimate, { props: { text: '', attachments: [] }, global: { plugins: [i18n] } })
}

it('says what is sent costs, with what was cached, and asks for prices once', async () => {
  const page = open('dear')
  await flushPromises()
  expect([page.text(), asked.times]).toEqual(['', 0])
  for (const text of ['h', 'he', 'hel', 'hello']) await page.setProps({ text })
  await flushPromises()
  // Half of 100,000 at $1, the rest at $10.
  expect(page.get('button').text()).toBe('about $0.55 plus the answer')
  expect(asked.times).toBe(1)
  await page.get('button').trigger('focus')
  const more = page.get('[role=tooltip]').text()
  expect(page.get('button').attributes('aria-describedby')).toBe(page.get('[role=tooltip]').attributes('id'))
  expect(more).toContain('Sends about 100,006 tokens, 50,000 of them from the provider\'s cache.')
  expect(more).toContain('The answer costs $50.00 per million tokens.')
  expect(more).toContain('Recent answers here: $0.25.')
  await page.get('button').trigger('keydown', { key: 'Escape' })
  expect(page.find('[role=tooltip]').exists()).toBe(false)
})

it.each(['odd', 'not listed'])('never says that an unknown price is nothing: %s', async (model) => {
  const page = open(model)
  await page.setProps({ text: 'hello' })
  await flushPromises()
  expect(page.get('button').text()).toBe('price unknown')
})

it.each([
  ['the demo model', 'scripted', 100_000],
  ['a request that nobody can count', 'p', null],
])('says nothing of %s', async (_, provider, nextInput) => {
  const page = open('dear', provider, nextInput)
  await page.setProps({ text: 'hello' })
  await flushPromises()
  expect(page.text()).toBe('')
})

describe('the estimate', () => {
  const forLong = { above: 200_000, input: 2, output: 20, cached: null }
  const usual = { above: 0, input: 1, output: 10, cached: 0.1 }
  const prices = [forLong, usual]

  describe('what the next request costs', () => {
    it('counts what is typed and attached as the gateway does', () => {
      expect(draftTokens('', [])).toBe(4)
      expect(draftTokens('12345', [])).toBe(6)
      const of = (mediaType: string, bytes: number, width?: number, height?: number) => draftTokens('', [{ id: 'a', name: 'a', mediaType, bytes, width: width ?? null, height: height ?? null }]) - 4
      expect(of('image/png', 9_999, 750, 10)).toBe(10)
      expect(of('application/pdf', 400)).toBe(10)
      expect(of('application/pdf', 99_000_000)).toBe(100_000)
      expect(of('text/plain', 41)).toBe(11)
    })

    it('takes the price of a request of that size, and the cached one for what was cached', () => {
      expect(priceFor({ prices: [] }, 10)).toBeNull()
      expect(priceFor({ prices }, 200_000)?.input).toBe(1)
      const long = priceFor({ prices }, 200_001)
      expect(long?.input).toBe(2)
      expect(inputCost(usual, 1_000_000, 500_000)).toBeCloseTo(0.55)
      // More than all of it cannot be cached, and an unknown price of the cache makes nothing free.
      expect(inputCost(usual, 1_000, 5_000)).toBeCloseTo(0.0001)
      expect(inputCost(forLong, 1_000_000, 500_000)).toBeCloseTo(2)
    })

    it('believes in a cache only where a provider said so', () => {
      expect(cachedShare(undefined)).toBe(0)
      expect(cachedShare({ inputTokens: 0, cachedTokens: 0 })).toBe(0)
      expect(cachedShare({ inputTokens: 100, cachedTokens: 25 })).toBe(0.25)
      expect(cachedShare({ inputTokens: 100, cachedTokens: '25' })).toBe(0)
      expect(cachedShare({ inputTokens: 100, cachedTokens: 300 })).toBe(1)
    })
  })
})
