import { expect, it } from 'vitest'
import { queueCall } from '@/approval/testing'
import type { StoredEvent } from '@/wire/types'
import { withEvents, withGroup, type WaitingGroup } from './useInbox'

const group = (sessionId: string, since: string, seq = 1): WaitingGroup => ({ sessionId, title: null, since, calls: [], asked: [], seq, isGone: false })
const ids = (groups: WaitingGroup[]) => groups.map(({ sessionId }) => sessionId).join('')

it('keeps sessions where they stand, and puts new ones where the server lists them', () => {
  const [a, b, c] = [group('a', '2026-11-21T10:00:00Z'), group('b', '2026-11-21T10:00:05Z'), group('c', '2026-11-21T10:00:09Z')]
  expect(ids(withGroup(withGroup(withGroup([], c), a), b))).toBe('abc')
  // What waits longest was decided: the rest of the batch does not jump away from the pointer.
  expect(ids(withGroup([a, b, c], group('a', '2026-11-21T10:01:00Z', 2)))).toBe('abc')
  // Offsets of the hour are no order of their own.
  expect(ids(withGroup([b], group('z', '2026-11-21T11:00:00+01:00')))).toBe('zb')
})

it('is not taken back by an answer that was overtaken', () => {
  const newer = { ...group('a', '2026-11-21T10:00:00Z', 9), title: 'newer' }
  expect(withGroup([newer], group('a', '2026-11-21T10:00:00Z', 8))[0]?.title).toBe('newer')
})

it('reads from events who decided what, and that an approval was taken back', () => {
  const event = (name: string, said: Record<string, unknown>): StoredEvent => ({ seq: 1, at: '', event: name, args: [said] })
  const bo = { id: 'bo', name: 'Bo' }
  const calls = withEvents([queueCall('a'), queueCall('b'), queueCall('c'), queueCall('d')], [
    event('tool:decided', { callId: 'a', approved: true, by: bo, scope: 'once', edited: true }),
    event('tool:output', { callId: 'a', status: 'completed' }),
    event('tool:decided', { callId: 'b', approved: false, by: bo, scope: 'once', reason: 'no' }),
    event('tool:decided', { callId: 'c', approved: false, by: bo, scope: 'taken_back' }),
    event('tool:output', { callId: 'd', status: 'cancelled' }),
    event('tool:decided', { callId: 'elsewhere', approved: true, by: bo }),
  ])
  expect(calls.map(({ status, decidedBy, reason, edited }) => [status, decidedBy?.name, reason, edited])).toEqual([
    ['approved', 'Bo', undefined, true], ['rejected', 'Bo', 'no', false], ['pending', undefined, undefined, false], ['cancelled', undefined, undefined, false],
  ])
})

it('shows what ran of a call that somebody changed, beside what was asked for', () => {
  const [ana, bo] = [{ id: 'ana', name: 'Ana' }, { id: 'bo', name: 'Bo' }]
  const said = { callId: 'a', approved: true, by: ana, scope: 'once', edited: true, args: { path: 'b' }, editedBy: bo }
  const [call] = withEvents([queueCall('a', { args: { path: 'a' } })], [{ seq: 1, at: '', event: 'tool:decided', args: [said] }])
  expect(call).toMatchObject({ args: { path: 'b' }, originalArgs: { path: 'a' }, editedBy: bo, decidedBy: ana })
})
