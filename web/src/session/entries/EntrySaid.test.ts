import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { i18n } from '@/locales'
import { loadMarkdown } from '@/markdown/blocks'
import { EMPTY, type Spent } from '@/session/conversation/conversation'
import { fold } from '@/session/conversation/fold'
import { useSession } from '@/session/store/session'
import TranscriptView from '@/session/transcript/TranscriptView.vue'
import { systemReady } from '@/wire/testing'
import AnswerDetails from './AnswerDetails.vue'

let page: VueWrapper

beforeAll(loadMarkdown)
beforeEach(() => setActivePinia(createPinia()))
afterEach(() => page.unmount())

const at = '2026-11-25T10:00:00Z'

async function show(ended: object) {
  const session = useSession()
  session.conversation = fold(EMPTY, [
    { seq: 1, at, event: 'user:message', args: ['tell me all', {}] },
    { seq: 2, at, event: 'agent:thinking', args: [{ turn: 1, iteration: 1 }] },
    { seq: 3, at, event: 'agent:response', args: ['It began', { turn: 1, ...ended }] },
  ])
  page = mount(TranscriptView, { attachTo: document.body, global: { plugins: [i18n] } })
  await nextTick()
  return session
}

const goOn = () => page.findAll('button').find((button) => button.text() === 'Continue')

it.each([
  [{ finish: 'length' }, 'its maximum length', true],
  [{ finish: 'context_window' }, 'context is full', true],
  [{ finish: 'pause' }, 'pausing', true],
  [{ finish: 'refusal', stopDetail: 'cyber' }, 'The provider says: cyber', false],
  [{ finish: 'content_filter', stopDetail: 'SAFETY' }, 'The provider says: SAFETY', false],
])('says why an answer ended early and what helps: %o', async (ended, words, goesOn) => {
  await show(ended)
  expect(page.get('.ending').text()).toContain(words)
  expect(goOn() !== undefined).toBe(goesOn)
})

it.each(['stop', 'tool_calls', 'other', undefined])('says nothing of an answer that ended with %s', async (finish) => {
  await show({ finish })
  expect(page.find('.ending').exists()).toBe(false)
})

it('says who answered in the place of the model that was asked', async () => {
  const answeredBy = { provider: 'other', model: 'big', reason: 'provider `first` is overloaded' }
  await show({ finish: 'stop', answeredBy })
  expect(page.get('.fallback').text()).toBe('Answered by other/big because provider `first` is overloaded')
})

it('lets the model go on by a message, from the keyboard too, and only from the newest answer', async () => {
  const session = await show({ finish: 'length' })
  const send = vi.spyOn(session, 'send').mockReturnValue(null)
  const button = goOn()
  const element = button?.element as HTMLButtonElement
  element.focus()
  expect(document.activeElement).toBe(element)
  expect(element.tagName).toBe('BUTTON')
  await button?.trigger('click')
  expect(send).toHaveBeenCalledExactlyOnceWith('Continue exactly where you stopped. Repeat nothing you have said.')
  session.conversation = fold(session.conversation, [
    { seq: 4, at, event: 'user:message', args: ['Continue', {}] },
    { seq: 5, at, event: 'agent:thinking', args: [{ turn: 2, iteration: 1 }] },
    { seq: 6, at, event: 'agent:response', args: ['and it ended.', { turn: 2, finish: 'stop' }] },
  ])
  await nextTick()
  expect(goOn()).toBeUndefined()
  expect(page.get('.ending').text()).toContain('its maximum length')
})

describe('the details', () => {
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
      'of that, cached': '1,000',
      'of that, written to the cache': '100',
      Output: '50',
      'of that, reasoning': '20',
      Cost: '$0.012',
      'Time to first token': '800 ms',
      Time: '4.2 s',
      'Finished': 'answer limit reached',
    })
  })

  it('says unknown where there is no price, and nothing of what nobody told', () => {
    const told = rows({ model: 'm', provider: null, usage: { inputTokens: 0, outputTokens: 3, cachedTokens: 0, isEstimated: true }, cost: null, durationMs: undefined, firstTokenMs: undefined, finish: 'of the future' })
    expect(told).toEqual({ Model: 'm', Input: '0 (estimated)', Output: '3 (estimated)', Cost: 'unknown', 'Finished': 'of the future' })
  })

  it('names the provider of the session where nothing else was chosen', () => {
    const session = useSession()
    session.ready = systemReady({ model: 'm', providerId: 'own' })
    expect(rows({ ...SPENT, provider: null }).Provider).toBe('own')
    expect(rows({ ...SPENT, provider: null, model: 'other' }).Provider).toBeUndefined()
    session.conversation = { ...session.conversation, model: 'm', provider: 'new' }
    expect(rows({ ...SPENT, provider: null }).Provider).toBeUndefined()
  })
})
