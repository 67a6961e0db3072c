import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { defineComponent, nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { assertiveText } from '@/ui/announcer'
// Loaded beforehand, as the chunk that a person would wait for.
import '@/models/KeyChange.vue'
import { usePerson } from '@/stores/person'
import { rest } from '@/wire/rest'
import type { ProviderItem } from '@/wire/restTypes'
import { announceSession } from '@/session/announcements'
import EntryNote from './EntryNote.vue'
import { EMPTY, type NoteEntry } from '@/session/conversation/conversation'
import { fold } from '@/session/conversation/fold'
import { useSession } from '@/session/store/session'

const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/:rest(.*)*', component: { render: () => null } }] })

let page: VueWrapper
let seq: number

beforeEach(() => {
  setActivePinia(createPinia())
  seq = 0
})
afterEach(() => {
  page.unmount()
  document.body.innerHTML = ''
})

function add(event: string, ...args: unknown[]): void {
  const session = useSession()
  const place = { seq: ++seq, at: '2026-11-23T10:00:00Z' }
  const last = args.pop() as object
  session.conversation = fold(session.conversation, [{ ...place, event, args: [...args, { ...last, ...place }] }])
}

/** The line of a fork says what its workspace is, as it changes. */
it('says of a fork what is in its workspace', async () => {
  const said = (): string => page.text().replace(/\s+/g, ' ')
  add('session:forked', { sessionId: 'ses_1', fromSeq: 4, hasFiles: true })
  show()
  expect(said()).toContain('Copying its current files…')
  useSession().copiedBytes = 3_100_000
  await nextTick()
  expect(said()).toContain('3.1 MB so far')
  add('session:workspace', { copiedBytes: 4_000_000 })
  await nextTick()
  page.unmount()
  show()
  expect(said()).toMatch(/a copy of its files from .* \(4 MB\), which may be later than this point/)

  for (const [event, words] of [
    [{ hasFiles: false }, 'It had no files.'],
    [{}, 'Its files are not in this workspace.'],
  ] as const) {
    page.unmount()
    add('session:forked', { sessionId: 'ses_1', fromSeq: 4, ...event })
    show()
    expect(said()).toContain(words)
  }
  add('session:workspace', { empty: 'too_large' })
  page.unmount()
  show()
  expect(said()).toContain('This workspace is empty: its files are more than a workspace may have.')
})

function fail(code: string, retryable = false): void {
  add('user:message', 'go', {})
  add('agent:error', 'no', { code, retryable, turn: 1 })
  show()
}

function show(): void {
  const entry = useSession().conversation.entries.at(-1) as NoteEntry
  page = mount(EntryNote, {
    props: { entry },
    attachTo: document.body,
    global: { plugins: [i18n, router] },
  })
}

const ways = () => page.findAll('.ways button, .ways a').map((way) => way.text())

it.each([
  ['missing_api_key', false, ['Retry', 'Add a key', 'Choose a model']],
  ['provider_rejected', true, ['Retry', 'Choose a model']],
  ['context_overflow', false, ['Choose a model', 'Start with fresh context']],
  ['max_iterations', false, ['Retry', 'Choose a model', 'Start with fresh context']],
  ['budget_exhausted', false, ['Choose a model']],
  ['provider_unavailable', true, ['Retry']],
])('offers after %s what helps', (code, retryable, expected) => {
  fail(code, retryable)
  expect(ways()).toEqual(expected)
})

it('changes a refused key in place, and only for one that works', async () => {
  const item: ProviderItem = { id: 'own', kind: 'openai', baseUrl: 'https://a.example/v1', api: 'auto', hasKey: true, models: ['m'], contextWindows: {}, maxOutputs: {}, efforts: {}, moreKeys: 0, fallback: [], prices: {}, source: 'tenant', isDefault: false }
  vi.spyOn(rest, 'providers').mockResolvedValue({ items: [item] })
  const test = vi.spyOn(rest, 'testProvider').mockResolvedValueOnce({ ok: false, latencyMs: 1, models: [], error: { code: 'provider_rejected', message: 'no such key' }, isDefault: false })
  const put = vi.spyOn(rest, 'putProvider').mockResolvedValue(item)
  usePerson().me = { user: { id: 'ana', name: 'Ana', role: 'owner', rights: ['providers.manage'] } } as never
  useSession().conversation = { ...useSession().conversation, provider: 'own' }
  fail('provider_rejected', true)
  expect(ways()).toEqual(['Retry', 'Change the key', 'Choose a model'])
  await page.findAll('.ways button')[1]?.trigger('click')
  await vi.waitFor(() => expect(page.find('input').exists()).toBe(true))
  await page.get('input').setValue('sk-wrong')
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.get('[role=alert]').text()).toContain('no such key')
  expect(put).not.toHaveBeenCalled()

  test.mockResolvedValueOnce({ ok: true, latencyMs: 1, models: ['m'], model: 'm', isDefault: false })
  await page.get('input').setValue('sk-right')
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(put).toHaveBeenCalledWith('own', { kind: 'openai', scope: 'tenant', baseUrl: 'https://a.example/v1', models: ['m'], apiKey: 'sk-right' })
  expect(page.emitted('retry')).toHaveLength(1)
  expect(page.find('input').exists()).toBe(false)
  vi.restoreAllMocks()
})

it('offers to ask again once another model is chosen, and nothing once it went on', async () => {
  fail('context_overflow')
  add('session:changed', { model: 'larger', provider: 'p' })
  await nextTick()
  expect(ways()).toEqual(['Retry', 'Choose a model', 'Start with fresh context'])
  add('user:message', 'shorter', {})
  await nextTick()
  expect(ways()).toEqual([])
})

it.each([
  ['agent:response', ['I begin', { turn: 1, finish: 'content_filter', droppedCalls: 2 }], "The next answer was refused or filtered. 2 calls in it did not run."],
  ['agent:response', ['', { turn: 1, finish: 'stop', droppedCalls: 1 }], '1 call without a tool name was dropped.'],
  [
    'context:compacted',
    [{ strategy: 'shorten-results', results: 3, before: { messages: 9, tokens: 41_000 }, after: { messages: 9, tokens: 17_000 } }],
    '41,000 tokens before, 17,000 after. Nothing is lost here.',
  ],
  [
    'session:changed',
    [{ placed: { id: 'x', name: 'a.pdf', path: '/workspace/attachments/a.pdf' } }],
    'The model cannot read a.pdf directly, so the file is in the workspace: /workspace/attachments/a.pdf',
  ],
  [
    'context:compacted',
    [{ strategy: 'delete-middle', before: { messages: 50, tokens: 31_000 }, after: { messages: 37, tokens: 22_000 }, left: { messages: 13, fromSeq: 1, toSeq: 2 } }],
    'The model no longer reads 13 earlier entries (delete-middle): 31,000 tokens before, 22,000 after.',
  ],
  ['context:compacted', [{ strategy: 'lower-limit', before: { tokens: 9_000 }, after: { tokens: 4_000 } }], 'about half as much from here: 9,000 tokens before, 4,000 after.'],
  ['context:compacted', [{ strategy: 'drop-reasoning', before: { tokens: 9_000 }, after: { tokens: 7_000 } }], 'no longer sent: 9,000 tokens before, 7,000 after.'],
  [
    'context:compacted',
    [{ strategy: 'vendor', before: { tokens: 61_000 }, after: { tokens: 9_000 }, summary: 'All of it.', summarisedBy: { model: 'claude', cost: 0.25 } }],
    'The provider of claude compacted the context: 61,000 tokens before, 9,000 after. Nothing is lost here. This cost $0.25, included in the cost of the answer.',
  ],
  [
    'context:compacted',
    [{ strategy: 'vendor', summarisedBy: { model: 'gpt', cost: null } }],
    'The provider of gpt compacted the context without saying by how much. Nothing is lost here. The summary is encrypted; only the provider can read it.',
  ],
  ['session:changed', [{ compaction: ['none'] }], 'from the next request: Drop nothing.'],
  ['session:changed', [{ compaction: [] }], 'from the next request: Default.'],
])('says what became of the context and of calls: %s', (event, args, words) => {
  add('user:message', 'go', {})
  add(event, ...args)
  const entry = useSession().conversation.entries.find((found) => found.kind === 'note') as NoteEntry
  page = mount(EntryNote, { props: { entry }, attachTo: document.body, global: { plugins: [i18n, router] } })
  expect(page.text()).toContain(words)
  const last = useSession().conversation.entries.at(-1)
  expect(last?.kind).toBe(event === 'agent:response' ? 'said' : 'note')
})

it('shows what left the context', () => {
  add('user:message', 'the first question', {})
  add('agent:response', 'the first answer', { turn: 1 })
  add('user:message', 'the next', {})
  const [first, , next] = useSession().conversation.entries
  const left = { messages: 2, fromSeq: first?.seq, toSeq: next?.seq }
  const written = { summary: 'One question was answered.', summarisedBy: { provider: 'p', model: 'small' } }
  add('context:compacted', { strategy: 'partial-summary', before: { tokens: 9 }, after: { tokens: 3 }, left, ...written })
  const entry = useSession().conversation.entries.at(-1) as NoteEntry
  page = mount(EntryNote, { props: { entry }, attachTo: document.body, global: { plugins: [i18n, router] } })
  const folded = page.findAll('details summary').map((line) => line.text())
  expect(folded).toEqual(['Show the summary written by small', 'Show what was left out'])
  expect(page.get('details blockquote').text()).toBe('One question was answered.')
  expect(page.findAll('details li').map((line) => line.text())).toEqual(['Asked: the first question', 'Answered: the first answer'])
})

it('opens what a provider wrote for what it compacted, where people can read it', () => {
  add('user:message', 'go', {})
  const show = (what: object) => {
    add('context:compacted', { strategy: 'vendor', summarisedBy: { model: 'm' }, ...what })
    const entry = useSession().conversation.entries.at(-1) as NoteEntry
    page = mount(EntryNote, { props: { entry }, attachTo: document.body, global: { plugins: [i18n, router] } })
    return page
  }
  expect(show({ summary: 'All of it.' }).get('details blockquote').text()).toBe('All of it.')
  page.unmount()
  expect(show({}).find('details').exists()).toBe(false)
})

it('begins a new context', async () => {
  fail('context_overflow')
  const reset = vi.spyOn(useSession(), 'resetHistory').mockResolvedValue({ ok: true })
  const button = page.findAll('button').find((way) => way.text() === 'Start with fresh context')
  await button?.trigger('click')
  expect(reset).toHaveBeenCalledOnce()
  add('history:reset', {})
  await nextTick()
  expect(ways()).toEqual([])
})

it('is said aloud when it happens, and not when an old session is opened', async () => {
  const session = useSession()
  assertiveText.value = ''
  page = mount(defineComponent({ setup: () => (announceSession(session), () => null) }))
  const place = { seq: 1, at: '2026-11-23T10:00:00Z' }
  const failed = (at: number) => ({ ...place, seq: at, event: 'agent:error', args: ['no', { code: 'max_iterations', turn: at, seq: at }] })
  session.conversation = fold(EMPTY, [failed(1)])
  await nextTick()
  expect(assertiveText.value).toBe('')
  session.conversation = fold(session.conversation, [failed(2)])
  await nextTick()
  expect(assertiveText.value).toBe('The turn reached its limit of model requests.')
})

it('says who gave a rule and who took it back, and takes back what is in force', async () => {
  const by = { id: 'ana', name: 'Ana' }
  add('session:changed', { ruleGiven: { id: 'rul_1', sentence: 'For the rest of this session, run `a\u202E` of `files` without asking.', by } })
  const entries = () => useSession().conversation.entries as NoteEntry[]
  const open = async (entry: NoteEntry | undefined) => {
    page = mount(EntryNote, { props: { entry: entry as NoteEntry }, attachTo: document.body, global: { plugins: [i18n, router] } })
    await vi.dynamicImportSettled()
    await flushPromises()
  }
  await open(entries()[0])
  expect(page.text()).toContain('Ana: For the rest of this session, run `a⟦U+202E⟧` of `files` without asking.')
  expect(page.get('.take-back button').text()).toBe('Take back')
  add('session:changed', { ruleTakenBack: { id: 'rul_1', by } })
  await nextTick()
  expect(page.find('.take-back').exists()).toBe(false)
  page.unmount()
  await open(entries()[1])
  expect(page.text()).toContain('Ana took a rule back.')
})
