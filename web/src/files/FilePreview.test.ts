/** What a file is shown as, and values as a table. */
import { describe, expect, it } from 'vitest'
import { MAX_ROWS, parseTable } from './csv'
import { hexOf, kindOf, textOf } from './kindOf'

const bytes = (text: string) => new TextEncoder().encode(text)

describe('the kind of a file', () => {
  it('follows its name and what its bytes are', () => {
    expect(kindOf('a.md', '# x')).toBe('markdown')
    expect(kindOf('a.HTML', '<p>')).toBe('page')
    expect(kindOf('a.svg', '<svg/>')).toBe('drawing')
    expect(kindOf('a.csv', 'a,b')).toBe('table')
    expect(kindOf('a.rs', 'fn')).toBe('text')
    expect(kindOf('a.rs', '')).toBe('empty')
    expect(kindOf('a.md', undefined)).toBe('binary')
  })

  it('takes for text what is UTF-8, also where the last character is cut', () => {
    const cut = bytes('aż').subarray(0, 2)
    expect(textOf(cut, false)).toBe('a')
    expect(textOf(cut, true)).toBe(undefined)
    expect(textOf(new Uint8Array([97, 0]), true)).toBe(undefined)
  })

  it('shows bytes sixteen a line', () => {
    expect(hexOf(bytes('0123456789abcdef\n'))).toBe(
      '00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n' + `00000010  0a${' '.repeat(45)}  .`,
    )
  })
})

describe('a table of values', () => {
  it('reads quotes, separators in them and both ends of lines', () => {
    const table = parseTable('a,b\r\n"x, ""y""",2\n"two\nlines",\n', ',')
    expect(table).toEqual({ head: ['a', 'b'], rows: [['x, "y"', '2'], ['two\nlines', '']], isCut: false })
    expect(parseTable('a\tb', '\t').head).toEqual(['a', 'b'])
    expect(parseTable('', ',')).toEqual({ head: [], rows: [], isCut: false })
  })

  it('is cut where there are more rows than are shown', () => {
    const table = parseTable(`h\n${'x\n'.repeat(MAX_ROWS + 5)}`, ',')
    expect([table.rows.length, table.isCut]).toEqual([MAX_ROWS, true])
  })
})
