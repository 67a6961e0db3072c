import { expect, it } from 'vitest'
import { goingOnWords } from './goingOn'

it('says what going on costs, and that a price is unknown', () => {
  const next = { tokens: 41_000, cachedTokens: 38_000, cost: 0.0312 }
  expect(goingOnWords(next)).toBe('Going on costs about $0.031: 41,000 tokens are sent again, 38,000 of them cached.')
  expect(goingOnWords({ ...next, cost: null })).toContain('what that costs is unknown')
  expect(goingOnWords(null)).toBe('')
})
