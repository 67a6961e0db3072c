import { flushPromises } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { rest } from '@/wire/rest'
import type { SessionItem } from '@/wire/restTypes'
import { useWaiting } from './waiting'

const item = (id: string, waiting: number): SessionItem => ({ id, title: id, createdAt: '', updatedAt: '', state: waiting > 0 ? 'waiting' : 'idle', waiting, version: 1, isPinned: false, isArchived: false, tags: [] })
const counted = (calls: number) => ({ calls, sessions: 1, lastDecidedAt: null })

beforeEach(() => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

it('asks how much waits at once, without a timer, and once more for what came meanwhile', async () => {
  const answers: ((count: ReturnType<typeof counted>) => void)[] = []
  const ask = vi.spyOn(rest, 'approvalCount').mockImplementation(() => new Promise((resolve) => answers.push(resolve)))
  const waiting = useWaiting()
  waiting.take(item('a', 2))
  expect(ask).toHaveBeenCalledTimes(1)
  waiting.take(item('b', 1))
  waiting.take(item('c', 1))
  expect(ask).toHaveBeenCalledTimes(1)
  answers[0]?.(counted(2))
  await flushPromises()
  expect([ask.mock.calls.length, waiting.calls]).toEqual([2, 2])
  answers[1]?.(counted(4))
  await flushPromises()
  expect([ask.mock.calls.length, waiting.calls]).toEqual([2, 4])
  expect(vi.getTimerCount()).toBe(0)
})

it('asks only where the count may be another', async () => {
  const ask = vi.spyOn(rest, 'approvalCount').mockResolvedValue(counted(3))
  const waiting = useWaiting()
  waiting.take(item('a', 2))
  await flushPromises()
  waiting.take(item('a', 2))
  await flushPromises()
  expect(ask).toHaveBeenCalledTimes(1)
  waiting.take(item('a', 0))
  await flushPromises()
  expect(ask).toHaveBeenCalledTimes(2)
  waiting.drop('b')
  await flushPromises()
  expect(ask).toHaveBeenCalledTimes(3)
  waiting.stale()
  expect(ask).toHaveBeenCalledTimes(4)
})

it('keeps what it knows while the server does not answer, and shows nothing to the next person', async () => {
  let answer: (count: ReturnType<typeof counted>) => void = () => {}
  const ask = vi.spyOn(rest, 'approvalCount').mockResolvedValueOnce(counted(2)).mockRejectedValueOnce(new Error('away'))
  const waiting = useWaiting()
  await waiting.refresh()
  await waiting.refresh()
  expect(waiting.calls).toBe(2)
  ask.mockReturnValueOnce(new Promise((resolve) => (answer = resolve)))
  const late = waiting.refresh()
  waiting.reset()
  answer(counted(7))
  await late
  expect(waiting.calls).toBe(0)
})
