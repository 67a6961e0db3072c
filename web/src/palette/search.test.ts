import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { effectScope, nextTick, type EffectScope } from 'vue'
import { rest } from '@/wire/rest'
import type { FoundSession } from '@/wire/restTypes'
import { hasWord, joined, useSearch } from './search'

const session = (id: string, ...seqs: number[]): FoundSession => ({
  sessionId: id,
  title: id,
  isArchived: false,
  hasMore: false,
  hits: seqs.map((seq) => ({ seq, kind: 'message', at: '2026-11-23T10:00:00Z', snippet: [{ text: 'x', isMatch: true }] })),
})
const page = (...items: FoundSession[]) => ({ items, nextCursor: null, isIndexing: false })

function begin(scope: EffectScope): ReturnType<typeof useSearch> {
  const search = scope.run(useSearch)
  if (!search) throw new Error('the scope has ended')
  return search
}

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

it('asks once for what was typed in one go', async () => {
  const asked = vi.spyOn(rest, 'search').mockResolvedValue(page(session('a', 3)))
  const scope = effectScope()
  const search = begin(scope)
  for (const text of ['p', 'pe', 'pel']) {
    search.query.value = text
    await nextTick()
  }
  expect(search.state.value).toBe('asking')
  await vi.runAllTimersAsync()
  expect(asked.mock.calls).toEqual([['pel', null]])
  expect(search.lines.value.map(({ hit }) => hit.seq)).toEqual([3])
  scope.stop()
})

it('shows the answer to what stands there, not one that comes late', async () => {
  let late: (value: ReturnType<typeof page>) => void = () => {}
  vi.spyOn(rest, 'search').mockImplementation((text) =>
    text === 'one' ? new Promise((resolve) => (late = resolve)) : Promise.resolve(page(session('b', 1))),
  )
  const scope = effectScope()
  const search = begin(scope)
  search.query.value = 'one'
  await nextTick()
  await vi.runAllTimersAsync()
  search.query.value = 'two'
  await nextTick()
  await vi.runAllTimersAsync()
  late(page(session('a', 1)))
  await vi.runAllTimersAsync()
  expect(search.found.value.map(({ sessionId }) => sessionId)).toEqual(['b'])
  search.query.value = '  '
  await nextTick()
  expect([search.state.value, search.found.value]).toEqual(['empty', []])
  scope.stop()
})

it('says that the search failed, and asks again', async () => {
  const asked = vi.spyOn(rest, 'search').mockRejectedValueOnce(new Error('away')).mockResolvedValue(page())
  const scope = effectScope()
  const search = begin(scope)
  search.query.value = 'one'
  await nextTick()
  await vi.runAllTimersAsync()
  expect(search.state.value).toBe('failed')
  await search.again()
  expect(search.state.value).toBe('found')
  expect(asked).toHaveBeenCalledTimes(2)
  scope.stop()
})

it('keeps one session together over pages', () => {
  const all = joined([session('a', 9), session('b', 8)], [session('a', 2), session('c', 1)])
  expect(all.map(({ sessionId, hits }) => [sessionId, ...hits.map(({ seq }) => seq)])).toEqual([['a', 9, 2], ['b', 8], ['c', 1]])
})

it('looks for words only', () => {
  expect(['a', '索', '7', ' -- ', ''].map(hasWord)).toEqual([true, true, true, false, false])
})
