import { beforeEach, expect, it } from 'vitest'
import type { SessionItem } from '@/wire/restTypes'
import { groups, select, selected } from './rail'

beforeEach(() => (selected.value = null))

it('selects one by one, and a range from the last', () => {
  const ids = ['a', 'b', 'c', 'd', 'e']
  select(ids, 'b', false)
  select(ids, 'd', true)
  expect([...(selected.value ?? [])]).toEqual(['b', 'c', 'd'])
  select(ids, 'c', false)
  expect([...(selected.value ?? [])]).toEqual(['b', 'd'])
  select(ids, 'a', true)
  expect([...(selected.value ?? [])].sort()).toEqual(['a', 'b', 'c', 'd'])
})

it('groups what waits, what is pinned, and the rest by day', () => {
  const now = new Date(2026, 10, 23, 12)
  const item = (id: string, more: Partial<SessionItem>): SessionItem => ({ id, title: id, createdAt: '', updatedAt: now.toISOString(), state: 'idle', waiting: 0, version: 1, isPinned: false, isArchived: false, tags: [], ...more })
  const found = groups([item('p', { isPinned: true }), item('w', { waiting: 1 }), item('t', {})], now)
  expect(found.map(({ items }) => items.map(({ id }) => id))).toEqual([['w'], ['p'], ['t']])
})
