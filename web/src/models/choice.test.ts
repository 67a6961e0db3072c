import { describe, expect, it } from 'vitest'
import type { Model } from '@/wire/restTypes'
import { cannotUseTools, choices, price } from './choice'

function model(id: string, more: Partial<Model> = {}): Model {
  return { id, name: id, provider: 'p', contextWindow: null, maxOutput: null, prices: [], abilities: [], ...more }
}

describe('the model picker', () => {
  const models = [model('gpt-4o', { provider: 'openai' }), model('claude-sonnet', { provider: 'anthropic', name: 'Claude Sonnet' }), model('llama')]

  it('finds by every word, wherever it stands', () => {
    const found = (filter: string) => choices(models, filter, new Set()).map((choice) => choice.model.id)
    expect(found('')).toEqual(['gpt-4o', 'claude-sonnet', 'llama'])
    expect(found('SON claude')).toEqual(['claude-sonnet'])
    expect(found('anthropic')).toEqual(['claude-sonnet'])
    expect(found('nothing')).toEqual([])
  })

  it('puts starred models on top and keeps the order of the rest', () => {
    const listed = choices(models, '', new Set(['p/llama']))
    expect(listed.map((choice) => [choice.model.id, choice.isStarred])).toEqual([
      ['llama', true],
      ['gpt-4o', false],
      ['claude-sonnet', false],
    ])
  })

  it('says the price of an ordinary request, and unknown where none is known', () => {
    const tier = (above: number, input: number) => ({ above, input, cached: null, output: input * 4 })
    expect(price(model('a', { prices: [tier(200_000, 2), tier(0, 1)] }))).toEqual({ input: 1, output: 4 })
    expect(price(model('a'))).toBeNull()
  })

  it('says that a model cannot use tools only where abilities are known', () => {
    expect(cannotUseTools(model('a', { abilities: ['images'] }))).toBe(true)
    expect(cannotUseTools(model('a', { abilities: ['tools'] }))).toBe(false)
    expect(cannotUseTools(model('a'))).toBe(false)
  })
})
