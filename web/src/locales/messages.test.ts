import { describe, expect, it } from 'vitest'
import { parseMessage, parseTexts } from '../../scripts/texts'
import { formatMessage } from './messages'
import { readFirstTexts, readLaterTexts } from './testing'

function check(message: string, values: Record<string, unknown>, expected: string) {
  expect(formatMessage(parseMessage(message), 'en', (name) => values[name])).toBe(expected)
}

describe('icu messages', () => {
  it('fills arguments', () => check('Ask {name}', { name: 'Ana' }, 'Ask Ana'))
  it('keeps an apostrophe', () => check("it's", {}, "it's"))
  it('quotes a brace', () => check("a '{' b", {}, 'a { b'))
  it('chooses one', () => check('{n, plural, one {# call} other {# calls}}', { n: 1 }, '1 call'))
  it('chooses other', () => check('{n, plural, one {# call} other {# calls}}', { n: 1200 }, '1,200 calls'))
  it('prefers an exact number', () => check('{n, plural, =0 {none} other {#}}', { n: 0 }, 'none'))
  it('selects', () => check('{k, select, a {A} other {B}}', { k: 'a' }, 'A'))
  it('nests', () => check('{n, plural, other {# in {where}}}', { n: 2, where: 'x' }, '2 in x'))
  it('refuses an open choice', () => expect(() => parseMessage('{n, plural, one {x}}')).toThrow('OTHER'))
  it('refuses a stray brace', () => expect(() => parseMessage('a } b')).toThrow('CLOSING_BRACE'))

  it('compiles every English text', () => {
    parseTexts(readFirstTexts())
    parseTexts(readLaterTexts())
  })
})
