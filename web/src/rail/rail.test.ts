import { beforeEach, expect, it } from 'vitest'
import type { SessionItem } from '@/wire/restTypes'
import { alone, families, groups, select, selected } from './rail'

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

const NOW = new Date(2026, 10, 23, 12)
const item = (id: string, more: Partial<SessionItem> = {}): SessionItem => ({ id, title: id, createdAt: id, updatedAt: NOW.toISOString(), state: 'idle', waiting: 0, version: 1, isPinned: false, isArchived: false, tags: [], ...more })
const fork = (id: string, of: string, more: Partial<SessionItem> = {}) => item(id, { forkedFrom: { sessionId: of, seq: 3 }, ...more })

it('groups what waits, what is pinned, and the rest by day', () => {
  const found = groups(alone([item('p', { isPinned: true }), item('w', { waiting: 1 }), item('t')]), NOW)
  expect(found.map((group) => group.families.map((family) => family.item.id))).toEqual([['w'], ['p'], ['t']])
})

it('nests forks under one entry, where the newest of them stands', () => {
  const listed = [fork('c', 'b'), item('x'), fork('b', 'a'), item('a')]
  const shown = (openId?: string) => families(listed, openId).map((family) => `${family.item.id}: ${family.members.map(({ id }) => id).join(' ')}`)
  expect(shown()).toEqual(['c: a b c', 'x: x'])
  expect(shown('a')).toEqual(['a: a b c', 'x: x'])
})

it('nests forks of a session that is not listed, and shows the one that waits', () => {
  const [only] = families([fork('c', 'gone'), fork('b', 'gone', { waiting: 2 })])
  expect([only?.item.id, only?.waiting, only?.members.length]).toEqual(['b', 2, 2])
  expect(groups(families([fork('b', 'c'), fork('c', 'b')]), NOW)).toHaveLength(1)
})
