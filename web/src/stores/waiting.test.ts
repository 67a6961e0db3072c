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

it('asks how much waits once for news of one moment, and only where that may be another', async () => {
  const ask = vi.spyOn(rest, 'approvalCount').mockResolvedValue(counted(3))
  const waiting = useWaiting()
  waiting.take(item('a', 2))
  waiting.take(item('b', 1))
  await vi.advanceTimersByTimeAsync(50)
  expect([ask.mock.calls.length, waiting.calls]).toEqual([1, 3])
  waiting.take(item('a', 2))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(ask).toHaveBeenCalledTimes(1)
  waiting.take(item('a', 0))
  waiting.drop('b')
  await vi.advanceTimersByTimeAsync(50)
  expect(ask).toHaveBeenCalledTimes(2)
  waiting.stale()
  expect(ask).toHaveBeenCalledTimes(3)
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
