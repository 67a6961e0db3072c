import { describe, expect, it } from 'vitest'
import { changeCounts, diffRows, withGaps } from './LineDiff.vue'

describe('diffRows', () => {
  function check(before: string, after: string, expected: string[]): void {
    const signs = { same: ' ', added: '+', removed: '-' }
    expect(diffRows(before, after).map((row) => `${signs[row.kind]}${row.text}`)).toEqual(expected)
  }

  it('finds lines that change', () => {
    check('a\nb\nc', 'a\nx\nc', [' a', '-b', '+x', ' c'])
    check('a', 'a\n', [' a', '+'])
    check('same', 'same', [' same'])
    check('a\nb\n', 'a\n', [' a', '-b'])
    check('a\n', 'a', [' a', '-'])
    check('a\n\n', 'a\n', [' a', '-'])
  })

  it('folds what is far from a change, and keeps every line', () => {
    const before = Array.from({ length: 40 }, (_, line) => `line ${line}`).join('\n')
    const rows = diffRows(before, before.replace('line 20', 'changed'))
    const entries = withGaps(rows)
    expect(changeCounts(rows)).toEqual({ added: 1, removed: 1 })
    expect(entries.filter(({ kind }) => kind === 'gap')).toHaveLength(2)
    expect(entries.flatMap((entry) => (entry.kind === 'gap' ? entry.rows : [entry]))).toEqual(rows)
  })

  it('gives up on a long search and shows both sides', () => {
    const side = (seed: number) => Array.from({ length: 4_000 }, (_, line) => String((line * seed) % 9_973)).join('\n')
    expect(changeCounts(diffRows(side(31), side(57))).added).toBeGreaterThan(0)
  }, 5_000)
})
