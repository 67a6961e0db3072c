import '@nuxt/ui/components/Popover.vue'
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { EMPTY } from '@/session/conversation/conversation'
import { withRunning } from '@/session/conversation/streaming'
import { useSession } from '@/session/store/session'
import { politeText } from '@/ui/announcer'
import { newest, no, settled, systemReady } from '@/wire/testing'
import type { SessionUsage, SystemReady } from '@/wire/types'
import CompactionChoice from './CompactionChoice.vue'
import { contextParts } from './ContextParts.vue'
import FreshContext from './FreshContext.vue'
import SessionHeader from './SessionHeader.vue'
import { contextShare, contextTitle, contextWords, costWords } from './ContextGauge.vue'
import WindowChoice from './WindowChoice.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

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

describe('the compaction', () => {


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
})

describe('a fresh context', () => {


  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })

  let control: VueWrapper

  async function open(change: Partial<SystemReady['state']> = {}): Promise<void> {
    useSession().open('ses_1')
    await newest().ready({ state: { ...systemReady().state, ...change } })
    control = mount(FreshContext, { global: { plugins: [i18n, router] } })
  }

  async function press(): Promise<void> {
    await control.get('button').trigger('click')
    await settled()
  }

  const refusal = () => control.find('[role=alert]')

  beforeEach(() => {
    vi.useFakeTimers()
    setActivePinia(createPinia())
    politeText.value = ''
  })
  afterEach(() => {
    control.unmount()
    useSession().close()
    vi.useRealTimers()
  })

  it('says what it does, begins a new context, and says so aloud', async () => {
    await open()
    expect(control.get('button').text()).toBe('Start with fresh context')
    expect(control.text()).toContain('The transcript stays.')
    await press()
    expect(newest().last).toMatchObject({ command: 'history:reset', payload: {} })
    expect(control.emitted('begun')).toBe(undefined)
    await newest().last.answer({ ok: true, seq: 1 })
    expect(control.emitted('begun')).toHaveLength(1)
    expect(politeText.value).toBe('New context. The model no longer sees what is above.')
    expect(refusal().exists()).toBe(false)
  })

  it('sends nothing while the agent works, and says what to do first', async () => {
    await open({ running: { turn: 1, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: '', since: '2026-01-01T00:00:00Z' } })
    await press()
    expect(newest().sent).toEqual([])
    expect(refusal().text()).toBe('The agent is working. Stop it first.')
  })

  it('says why there is no new context', async () => {
    await open()
    await press()
    await newest().last.answer(no('nothing_to_do', 'a turn is running; stop it first'))
    expect(refusal().text()).toBe('The context was not changed: a turn is running; stop it first')
    await newest().lose()
    await press()
    expect(refusal().text()).toBe('The context was not changed: you are offline.')
    expect(control.emitted('begun')).toBe(undefined)
  })
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
