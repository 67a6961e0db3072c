import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { effectScope, nextTick, type EffectScope } from 'vue'
import { target } from './jump'
import { rest } from '@/wire/rest'
import { useFind } from './FindBar.vue'

function begin(scope: EffectScope): ReturnType<typeof useFind> {
  const find = scope.run(() => useFind(() => 'ses_1'))
  if (!find) throw new Error('the scope has ended')
  return find
}

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

it('leads to the newest place first, and goes through all of them in a circle', async () => {
  const asked = vi.spyOn(rest, 'searchIn').mockResolvedValue({ items: [3, 8, 21] })
  const scope = effectScope()
  const find = begin(scope)
  find.query.value = 'word'
  await nextTick()
  await vi.runAllTimersAsync()
  expect(asked.mock.calls).toEqual([['ses_1', 'word']])
  const places = [target.value?.seq]
  for (const by of [1, 1, -1, -1] as const) {
    find.step(by)
    places.push(target.value?.seq)
  }
  expect(places).toEqual([21, 3, 8, 3, 21])
  expect(find.at.value).toBe(2)
  scope.stop()
})

it('says that nothing was found, or that nobody answered', async () => {
  vi.spyOn(rest, 'searchIn').mockResolvedValueOnce({ items: [] }).mockRejectedValueOnce(new Error('away'))
  const scope = effectScope()
  const find = begin(scope)
  for (const [query, state] of [['one', 'found'], ['two', 'failed']] as const) {
    find.query.value = query
    await nextTick()
    await vi.runAllTimersAsync()
    expect([find.state.value, find.found.value]).toEqual([state, []])
  }
  find.query.value = ''
  await nextTick()
  expect(find.state.value).toBe('empty')
  scope.stop()
})
