import { describe, expect, it } from 'vitest'
import type { SessionUsage } from '@/wire/types'
import { contextParts } from './contextParts'
import { contextShare, contextTitle, contextWords, costWords } from './usageWords'

describe('the context', () => {
  it('is told with the window where that is known', () => {
    expect(contextWords({ used: 1_234, window: 128_000 })).toBe('1.2K of 128K tokens')
    expect(contextShare({ used: 64_000, window: 128_000 })).toBe(0.5)
    expect(contextShare({ used: 200_000, window: 128_000 })).toBe(1)
  })

  it('says that a window is only assumed', () => {
    const context = { used: 1_234, window: 32_768, windowAssumed: true }
    expect(contextWords(context)).toBe('1.2K of 32.8K tokens (assumed)')
    expect(contextTitle(context)).toContain('32,768 tokens are assumed')
    expect(contextTitle({ ...context, windowAssumed: false })).toBe('1.2K of 32.8K tokens')
  })

  it.each([null, 0])('is told alone, without a gauge, for a window of %s', (window) => {
    expect(contextWords({ used: 18, window })).toBe('18 tokens')
    expect(contextShare({ used: 18, window })).toBeNull()
  })
})

describe('the cost', () => {
  const cost = (usage: Partial<SessionUsage>) =>
    costWords({ totalTokens: 1, totalCost: 0, budget: null, context: { used: 1, window: null }, seq: 1, ...usage })

  it('is what was paid', () => {
    expect(cost({ totalCost: 1.5 })).toBe('$1.50')
    expect(cost({ totalCost: 1.5, budget: 3 })).toBe('$1.50 of $3.00')
    expect(cost({})).toBe('$0.00')
  })

  it('is never nothing where a price is not known', () => {
    expect(cost({ unpricedRequests: 2 })).toBe('price unknown')
    expect(cost({ totalCost: null })).toBe('price unknown')
    expect(cost({ totalCost: 1.5, unpricedRequests: 1 })).toBe('at least $1.50')
  })
})

it('tells the parts of the last request, servers and sources one by one, and nothing of an old journal', () => {
  const parts = { system: 1_200, tools: { sandbox: 800, web: 0 }, context: { 'AGENTS.md': 90 }, history: 0, results: 30, message: 5, attachments: 0, reasoning: 0 }
  const context = { used: 1, window: null, request: { provider: 'p', model: 'm', parts } }
  expect(contextParts(context)).toEqual([
    { name: 'System prompt', tokens: 1_200 },
    { name: 'Definitions of tools: sandbox', tokens: 800 },
    { name: 'Read for this conversation: AGENTS.md', tokens: 90 },
    { name: 'Results of tools', tokens: 30 },
    { name: 'Newest message', tokens: 5 },
  ])
  expect(contextParts({ used: 1, window: null })).toEqual([])
})
