import { expect, it } from 'vitest'
import { branchesOf, type Relative } from './branches'

const relative = (id: string, age: number, sessionId?: string, seq = 0): Relative => ({
  id,
  createdAt: `2026-01-01T00:00:0${age}Z`,
  forkedFrom: sessionId === undefined ? null : { sessionId, seq },
})

it('finds nothing in a session that was never forked', () => {
  expect(branchesOf('a', [relative('a', 1)])).toEqual([])
  expect(branchesOf('a', [])).toEqual([])
})

it('names every way at the place where they part, the oldest first', () => {
  const family = [relative('a', 1), relative('b', 2, 'a', 4), relative('c', 3, 'a', 4)]
  const branch = [{ seq: 4, ids: ['a', 'b', 'c'] }]
  for (const id of ['a', 'b', 'c']) expect(branchesOf(id, family)).toEqual(branch)
})

it('tells a fork of a fork apart from its elders', () => {
  // `c` has the past of `b` up to 9, and so that of `a` up to 4; `d` goes back behind the fork of `b`.
  const family = [relative('a', 1), relative('b', 2, 'a', 4), relative('c', 3, 'b', 9), relative('d', 4, 'b', 2)]
  expect(branchesOf('c', family)).toEqual([
    { seq: 2, ids: ['c', 'd'] },
    { seq: 4, ids: ['a', 'c'] },
    { seq: 9, ids: ['b', 'c'] },
  ])
  expect(branchesOf('d', family)).toEqual([{ seq: 2, ids: ['a', 'b', 'c', 'd'] }])
})

it('knows siblings whose parent is deleted', () => {
  const family = [relative('b', 2, 'a', 4), relative('c', 3, 'a', 7)]
  expect(branchesOf('b', family)).toEqual([{ seq: 4, ids: ['b', 'c'] }])
})
