import { expect, test } from 'vitest'
import type { ServerItem } from '@/wire/restTypes'
import { costOf } from './serverWords'

const item = (enabledTools: number | null, definitionTokens: number | null, enabled = true) =>
  ({ name: 'a', enabled, enabledTools, definitionTokens }) as ServerItem

test('above 100 tools it is said what they cost in each request', () => {
  expect(costOf([item(100, 9_000), item(null, null)])).toBe('')
  expect(costOf([item(100, 9_000), item(50, 9_000, false)])).toBe('')
  const words = costOf([item(100, 11_000), item(1, 1_500)])
  expect(words).toMatch(/^101 tools .* 12\.5K tokens in every request/)
})
