import { describe, expect, it } from 'vitest'
import { firstLineOf, inOneLine } from './oneLine'

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
