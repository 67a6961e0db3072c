import { describe, expect, it } from 'vitest'
import { cachedShare, draftTokens, inputCost, priceFor } from './CostEstimate.vue'

const forLong = { above: 200_000, input: 2, output: 20, cached: null }
const usual = { above: 0, input: 1, output: 10, cached: 0.1 }
const prices = [forLong, usual]

describe('what the next request costs', () => {
  it('counts what is typed and attached as the gateway does', () => {
    expect(draftTokens('', [])).toBe(4)
    expect(draftTokens('12345', [])).toBe(6)
    const of = (mediaType: string, bytes: number, width?: number, height?: number) => draftTokens('', [{ id: 'a', name: 'a', mediaType, bytes, width: width ?? null, height: height ?? null }]) - 4
    expect(of('image/png', 9_999, 750, 10)).toBe(10)
    expect(of('application/pdf', 400)).toBe(10)
    expect(of('application/pdf', 99_000_000)).toBe(100_000)
    expect(of('text/plain', 41)).toBe(11)
  })

  it('takes the price of a request of that size, and the cached one for what was cached', () => {
    expect(priceFor({ prices: [] }, 10)).toBeNull()
    expect(priceFor({ prices }, 200_000)?.input).toBe(1)
    const long = priceFor({ prices }, 200_001)
    expect(long?.input).toBe(2)
    expect(inputCost(usual, 1_000_000, 500_000)).toBeCloseTo(0.55)
    // More than all of it cannot be cached, and an unknown price of the cache makes nothing free.
    expect(inputCost(usual, 1_000, 5_000)).toBeCloseTo(0.0001)
    expect(inputCost(forLong, 1_000_000, 500_000)).toBeCloseTo(2)
  })

  it('believes in a cache only where a provider said so', () => {
    expect(cachedShare(undefined)).toBe(0)
    expect(cachedShare({ inputTokens: 0, cachedTokens: 0 })).toBe(0)
    expect(cachedShare({ inputTokens: 100, cachedTokens: 25 })).toBe(0.25)
    expect(cachedShare({ inputTokens: 100, cachedTokens: '25' })).toBe(0)
    expect(cachedShare({ inputTokens: 100, cachedTokens: 300 })).toBe(1)
  })
})
