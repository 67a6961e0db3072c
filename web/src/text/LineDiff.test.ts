import { describe, expect, it } from 'vitest'
import { changeCounts, diffRows, withGaps, withMarks } from './LineDiff.vue'

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

describe('withMarks', () => {
  function check(before: string, after: string, expected: string[]): void {
    const drawn = withMarks(diffRows(before, after)).map(({ text, pieces }) => pieces?.map((piece) => (piece.isMarked ? `[${piece.text}]` : piece.text)).join('') ?? text)
    expect(drawn).toEqual(expected)
  }

  it('marks the words that differ between a line and the one in its place', () => {
    check('let port = 80', 'let port = 8080', ['let port = [80]', 'let port = [8080]'])
    check('a\none two\nb', 'a\none three\nb', ['a', 'one [two]', 'one [three]', 'b'])
    check('café naïve\n', 'café mauve\n', ['café [naïve]', 'café [mauve]'])
    check('x = 1;\ny = 2;', 'x = 3;\ny = 4;', ['x = [1];', 'y = [2];', 'x = [3];', 'y = [4];'])
  })

  it('marks nothing where two lines share little, one has no counterpart, or a line is very long', () => {
    check('one', 'something else', ['one', 'something else'])
    check('a', 'a\nb', ['a', 'b'])
    check(`same ${'x'.repeat(1_001)}`, `same ${'y'.repeat(1_001)}`, [`same ${'x'.repeat(1_001)}`, `same ${'y'.repeat(1_001)}`])
  })

  it('keeps every character', () => {
    const [before, after] = ['same a\u0301 \u{1F600} b\t', 'same a\u0301 \u{1F601} c\t']
    const [from, to] = withMarks(diffRows(before, after))
    expect([from?.pieces?.map(({ text }) => text).join(''), to?.pieces?.map(({ text }) => text).join('')]).toEqual([before, after])
  })
})
