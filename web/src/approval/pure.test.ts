import { describe, expect, it } from 'vitest'
import { readAnsi } from './ansi'
import { byteCount, characterCount, foldMiddle, lineCount, shownLineCount } from './fold'
import { changeCounts, diffRows, withGaps } from './lines'

describe('foldMiddle', () => {
  const limits = { maxCharacters: 10, maxLines: 4 }

  it.each([
    ['', null],
    ['0123456789', null],
    ['0123456789a', '0123456|1|89a'],
    ['0123456789abcdef', '0123456|6|def'],
    ['a\nb\nc\nd', null],
    ['a\nb\nc\nd\ne\nf', 'a\nb\n|6|f'],
    ['0'.repeat(1_007), '0000000|997|000'],
  ])('%j folds to %j', (text, expected) => {
    const folded = foldMiddle(text, limits)
    expect(folded && `${folded.head}|${folded.hiddenCharacters}|${folded.tail}`).toBe(expected)
  })

  it('loses nothing and cuts no pair in two', () => {
    for (const text of ['👍'.repeat(300), 'a\n'.repeat(500), `${'x'.repeat(9_000)}\n`, '\n'.repeat(99)]) {
      const folded = foldMiddle(text)
      if (folded === null) continue
      const middle = text.slice(folded.head.length, text.length - folded.tail.length)
      expect(characterCount(middle)).toBe(folded.hiddenCharacters)
      expect((folded.head + folded.tail).isWellFormed?.() ?? true).toBe(true)
    }
    expect(foldMiddle('👍'.repeat(1_500))?.hiddenCharacters).toBeGreaterThan(0)
  })

  it('counts lines and bytes', () => {
    expect(['', 'a', 'a\n', 'a\n\n'].map(shownLineCount)).toEqual([1, 1, 1, 2])
    expect([lineCount(''), lineCount('a\n'), byteCount('ä')]).toEqual([1, 2, 2])
  })
})

describe('diffRows', () => {
  function check(before: string, after: string, expected: string[]): void {
    const signs = { same: ' ', added: '+', removed: '-' }
    expect(diffRows(before, after).map((row) => `${signs[row.kind]}${row.text}`)).toEqual(expected)
  }

  it('finds lines that change', () => {
    check('a\nb\nc', 'a\nx\nc', [' a', '-b', '+x', ' c'])
    check('a', 'a\n', [' a', '+'])
    check('same', 'same', [' same'])
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

describe('readAnsi', () => {
  const ESC = '\u001b['

  it.each([
    ['plain', [['plain:']]],
    [`${ESC}31mred${ESC}0m x`, [['red:ansi-red', ' x:']]],
    [`${ESC}1;92mok\nstill${ESC}m`, [['ok:ansi-green,ansi-bold'], ['still:ansi-green,ansi-bold']]],
    [`${ESC}38;5;196mr${ESC}38;2;10;200;10mg${ESC}48;5;1mb`, [['r:ansi-red', 'g:ansi-green', 'b:ansi-green']]],
    [`${ESC}8mseen${ESC}0m${ESC}2Kx`, [['seen:', 'x:']]],
    ['10%\r20%\r\nend', [['10%:'], ['20%:'], ['end:']]],
    [`${ESC}30;40mink`, [['ink:']]],
  ])('%j', (text, expected) => {
    expect(readAnsi(text).map((line) => line.map((run) => `${run.text}:${run.classes.join()}`))).toEqual(expected)
  })

  it('shows what a terminal would take as a command', () => {
    expect(readAnsi('\u001b]0;title\u0007x')[0]?.[0]?.text).toBe('\u001b]0;title\u0007x')
  })
})
