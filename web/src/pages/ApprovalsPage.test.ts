import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { queueCall } from '@/approval/testing'
import { GUARD_MS } from '@/browser/inputGuard'
import { i18n } from '@/locales'
import { useWaiting } from '@/stores/waiting'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { SessionItem, WaitingItem } from '@/wire/restTypes'
import type { QueueCall } from '@/wire/types'
import ApprovalsPage from './ApprovalsPage.vue'

let page: VueWrapper
/** What the server would say waits. */
let waiting: WaitingItem[]

const waits = (sessionId: string, since: string, calls: QueueCall[], seq = 5): WaitingItem => ({ sessionId, title: `Title of ${sessionId}`, waitingSince: since, queue: { calls, seq } })
const row = (id: string, calls: number): SessionItem => ({ id, title: id, createdAt: '', updatedAt: '', state: 'waiting', waiting: calls, version: 1, isPinned: false, isArchived: false, tags: [] })
// Two sessions may ask in the same millisecond, and then their calls have one id.
const two = () => [
  waits('one', '2026-11-21T10:00:00Z', [queueCall('call_1_0'), queueCall('call_1_1')]),
  waits('two', '2026-11-21T10:00:01Z', [queueCall('call_1_0', { args: { path: 'other.md', content: '' }, digest: 'of-two' })]),
]

beforeEach(() => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  waiting = two()
  vi.spyOn(rest, 'approvals').mockImplementation((_, session) =>
    Promise.resolve({ items: waiting.filter(({ sessionId }) => session === undefined || sessionId === session), nextCursor: null }),
  )
  vi.spyOn(rest, 'approvalCount').mockImplementation(() => Promise.resolve({ calls: 0, sessions: 0, lastDecidedAt: '2026-11-21T09:00:00Z' }))
  vi.spyOn(rest, 'eventsAfter').mockResolvedValue({ items: [], nextCursor: null })
  vi.spyOn(rest, 'decide').mockResolvedValue({ ok: true, seq: 9 })
})
afterEach(() => {
  page.unmount()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

async function show(): Promise<void> {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/:rest(.*)*', component: { render: () => null } }] })
  page = mount(ApprovalsPage, { attachTo: document.body, global: { plugins: [i18n, router] } })
  await flushPromises()
  vi.advanceTimersByTime(GUARD_MS)
}

/** The server tells of a session, and what it would say of it is read. */
async function news(id: string, calls: number): Promise<void> {
  useWaiting().take(row(id, calls))
  await flushPromises()
}

async function key(name: string): Promise<void> {
  document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, altKey: name === 'ArrowUp' && document.activeElement === document.body }))
  await flushPromises()
}

function button(label: string) {
  const found = page.findAll('button').find((candidate) => candidate.attributes('aria-label') === label)
  if (found === undefined) throw new Error(`no button \`${label}\``)
  return found
}

const sessions = () => page.findAll('.inbox-session').map((part) => part.attributes('aria-label'))
const focused = () => {
  const card = document.activeElement as HTMLElement | null
  return [card?.closest('.inbox-session')?.getAttribute('aria-label'), card?.dataset.callId]
}

it('lists what waits, oldest first, each session with a way to it', async () => {
  await show()
  expect(sessions()).toEqual(['Title of one', 'Title of two'])
  expect(page.findAll('.inbox-title a').map((link) => link.attributes('href'))).toEqual(['/s/one', '/s/two'])
  expect(page.findAll('.tray-count').map((words) => words.text())).toEqual(['2 of 2 waiting for you. Nothing runs until all are decided.'])
  expect(page.findAll('article')).toHaveLength(2)
  // Nothing took the focus.
  expect(document.activeElement).toBe(document.body)
})

it('decides each call in its own session, with the digest that was seen, and goes on to the next', async () => {
  await show()
  await key('ArrowUp')
  expect(focused()).toEqual(['Title of one', 'call_1_0'])
  await key('a')
  await flushPromises()
  expect(rest.decide).toHaveBeenLastCalledWith('one', { callId: 'call_1_0', approved: true, digest: 'digest-call_1_0' })
  expect(focused()).toEqual(['Title of one', 'call_1_1'])
  // Within the guard of the card that has just come.
  await key('a')
  expect(rest.decide).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(GUARD_MS)
  await key('r')
  vi.advanceTimersByTime(GUARD_MS)
  await key('Enter')
  expect(rest.decide).toHaveBeenLastCalledWith('one', { callId: 'call_1_1', approved: false })
  expect(focused()).toEqual(['Title of two', 'call_1_0'])
  vi.advanceTimersByTime(GUARD_MS)
  await key('a')
  expect(rest.decide).toHaveBeenLastCalledWith('two', { callId: 'call_1_0', approved: true, digest: 'of-two' })
  expect((document.activeElement as HTMLElement).textContent).toContain('Waiting for you')

  waiting = []
  await news('one', 0)
  await news('two', 0)
  expect(sessions()).toEqual([])
  expect(page.text()).toContain('Nothing is waiting for you.')
  expect(page.text()).toContain('Last decision')
})

it('moves by arrows from session to session and round', async () => {
  await show()
  await key('ArrowUp')
  for (const expected of [['Title of one', 'call_1_1'], ['Title of two', 'call_1_0'], ['Title of one', 'call_1_0']]) {
    await key('ArrowDown')
    expect(focused()).toEqual(expected)
  }
  await key('ArrowUp')
  expect(focused()).toEqual(['Title of two', 'call_1_0'])
})

it('puts what begins to wait where it belongs, without the focus and not under a click', async () => {
  await show()
  waiting = [...two(), waits('three', '2026-11-21T10:00:02Z', [queueCall('x')])]
  await news('three', 1)
  expect(sessions()).toEqual(['Title of one', 'Title of two', 'Title of three'])
  await button('Approve: Write other.md').trigger('click')
  expect(rest.decide).not.toHaveBeenCalled()
  expect(document.activeElement).toBe(document.body)
})

it('says who decided elsewhere, and closes after a moment', async () => {
  await show()
  waiting = two().slice(0, 1)
  vi.mocked(rest.eventsAfter).mockResolvedValue({ items: [{ seq: 6, at: '', event: 'tool:decided', args: [{ callId: 'call_1_0', approved: false, by: { id: 'bo', name: 'Bo' }, scope: 'once' }] }], nextCursor: null })
  await news('two', 0)
  expect(rest.eventsAfter).toHaveBeenCalledWith('two', 5, 500)
  expect(page.text()).toContain('Refused by Bo')
  vi.advanceTimersByTime(2_999)
  await flushPromises()
  expect(sessions()).toEqual(['Title of one', 'Title of two'])
  vi.advanceTimersByTime(1)
  await flushPromises()
  expect(sessions()).toEqual(['Title of one'])
})

it('says that a session is gone, by the news and by the refusal of a decision', async () => {
  await show()
  useWaiting().drop('one')
  await flushPromises()
  vi.advanceTimersByTime(GUARD_MS)
  vi.mocked(rest.decide).mockRejectedValue(new RequestError(404, { code: 'session_not_found' }))
  await button('Approve: Write other.md').trigger('click')
  await flushPromises()
  expect(page.findAll('[role="status"]').filter((part) => part.text() === 'This session was deleted.')).toHaveLength(2)
  vi.advanceTimersByTime(3_000)
  await flushPromises()
  expect(page.text()).toContain('Nothing is waiting for you.')
})

it('says why a decision was refused, and lets it be made again on what is there now', async () => {
  await show()
  vi.mocked(rest.decide).mockRejectedValueOnce(new RequestError(409, { code: 'changed_since_shown' }))
  waiting = [two()[0] as WaitingItem, waits('two', '2026-11-21T10:00:01Z', [queueCall('call_1_0', { args: { path: 'other.md', content: '' }, digest: 'newer' })], 6)]
  await button('Approve: Write other.md').trigger('click')
  await flushPromises()
  expect(page.get('[role="alert"]').text()).toBe('The call changed since it was shown. Look at it again.')
  vi.advanceTimersByTime(GUARD_MS)
  await button('Approve: Write other.md').trigger('click')
  await flushPromises()
  expect(rest.decide).toHaveBeenLastCalledWith('two', { callId: 'call_1_0', approved: true, digest: 'newer' })
  expect(page.find('[role="alert"]').exists()).toBe(false)
})

it('says that it could not be read, and reads it again', async () => {
  vi.mocked(rest.approvals).mockRejectedValueOnce(new RequestError(0, {}))
  await show()
  expect(page.text()).toContain('Waiting calls could not be loaded.')
  expect(page.text()).not.toContain('Nothing is waiting')
  await page.findAll('button').find((candidate) => candidate.text() === 'Try again')?.trigger('click')
  await flushPromises()
  expect(sessions()).toHaveLength(2)
})
