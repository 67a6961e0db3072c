import { mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it } from 'vitest'
import { i18n } from '@/locales'
import type { Spent } from '@/session/conversation/conversation'
import { useSession } from '@/session/store/session'
import { systemReady } from '@/wire/testing'
import AnswerDetails from './AnswerDetails.vue'

beforeEach(() => setActivePinia(createPinia()))

const SPENT: Spent = {
  model: 'm',
  provider: 'p',
  usage: { inputTokens: 1_200, cachedTokens: 1_000, cacheWriteTokens: 100, outputTokens: 50, reasoningTokens: 20, isEstimated: false },
  cost: 0.0123,
  durationMs: 4_200,
  firstTokenMs: 800,
  finish: 'length',
}

function rows(spent: Spent): Record<string, string> {
  const wrapper = mount(AnswerDetails, { props: { spent }, global: { plugins: [i18n] } })
  const values = wrapper.findAll('dd').map((value) => value.text())
  return Object.fromEntries(wrapper.findAll('dt').map((name, at) => [name.text(), values[at] ?? '']))
}

it('says what an answer was made with, by class of tokens', () => {
  expect(rows(SPENT)).toEqual({
    Model: 'm',
    Provider: 'p',
    Input: '1,200',
    'Of that, cached': '1,000',
    'Of that, written to the cache': '100',
    Output: '50',
    'Of that, reasoning': '20',
    Cost: '$0.012',
    'Time to first token': '800 ms',
    Time: '4.2 s',
    'Finished by': 'It reached the longest answer',
  })
})

it('says unknown where there is no price, and nothing of what nobody told', () => {
  const told = rows({ model: 'm', provider: null, usage: { inputTokens: 0, outputTokens: 3, cachedTokens: 0, isEstimated: true }, cost: null, durationMs: undefined, firstTokenMs: undefined, finish: 'of the future' })
  expect(told).toEqual({ Model: 'm', Input: '0 (estimated)', Output: '3 (estimated)', Cost: 'unknown', 'Finished by': 'of the future' })
})

it('names the provider of the session where nothing else was chosen', () => {
  const session = useSession()
  session.ready = systemReady({ model: 'm', providerId: 'own' })
  expect(rows({ ...SPENT, provider: null }).Provider).toBe('own')
  expect(rows({ ...SPENT, provider: null, model: 'other' }).Provider).toBeUndefined()
  session.conversation = { ...session.conversation, model: 'm', provider: 'new' }
  expect(rows({ ...SPENT, provider: null }).Provider).toBeUndefined()
})
