import { describe, expect, it } from 'vitest'
import { byteCount, characterCount, firstLineOf, foldMiddle, inOneLine, lineCount, shownLineCount } from './shorten'

describe('inOneLine', () => {
  it('counts what it leaves out, by characters as they are and not as they are drawn', () => {
    expect(inOneLine(`${'a'.repeat(60)}${'\u202E'.repeat(100)}${'b'.repeat(60)}`)).toBe(`${'a'.repeat(60)}… 100 more characters …${'b'.repeat(60)}`)
    expect(inOneLine('👍'.repeat(300))).toContain('180 more characters')
  })

  it('gives the whole text where leaving out would save no room', () => {
    expect(inOneLine('x'.repeat(130))).toBe('x'.repeat(130))
    expect(firstLineOf('')).toBe('')
  })
})

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
