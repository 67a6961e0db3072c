import { describe, expect, it } from 'vitest'
import type { Model } from '@/wire/restTypes'
import { groups, lacks, price, retirement } from './choice'
import { effortWords, readTokens } from './effort'

function model(id: string, more: Partial<Model> = {}): Model {
  return { id, name: id, provider: 'p', contextWindow: null, maxOutput: null, prices: [], abilities: [], ...more }
}

describe('the model picker', () => {
  const models = [model('gpt-4o', { provider: 'openai' }), model('claude-sonnet', { provider: 'anthropic', name: 'Claude Sonnet' }), model('llama'), model('gpt-5', { provider: 'openai' })]
  const list = (filter: string, starred: string[] = [], problems: { provider: string; problem: string }[] = []) =>
    groups({ models, problems }, filter, new Set(starred)).map(({ provider, problem, choices }) => [provider, problem, choices.map((choice) => choice.model.id)])

  it('finds by every word, wherever it stands, and keeps what belongs to one provider together', () => {
    expect(list('')).toEqual([['openai', null, ['gpt-4o', 'gpt-5']], ['anthropic', null, ['claude-sonnet']], ['p', null, ['llama']]])
    expect(list('SON claude')).toEqual([['anthropic', null, ['claude-sonnet']]])
    expect(list('openai 5')).toEqual([['openai', null, ['gpt-5']]])
    expect(list('nothing')).toEqual([])
  })

  it('puts starred models on top', () => {
    expect(list('', ['p/llama', 'openai/gpt-5'])).toEqual([[null, null, ['llama', 'gpt-5']], ['openai', null, ['gpt-4o']], ['anthropic', null, ['claude-sonnet']]])
  })

  it('keeps what cannot be reached, with the reason', () => {
    expect(list('gone', ['away/gone/model'])).toEqual([[null, null, ['gone/model']]])
    expect(groups({ models: [], problems: [] }, '', new Set(['away/gone']))[0]?.choices[0]).toMatchObject({ isGone: true, model: { provider: 'away' } })
    expect(list('', [], [{ provider: 'away', problem: 'no connection' }]).at(-1)).toEqual(['away', 'no connection', []])
    expect(list('', [], [{ provider: 'openai', problem: 'replaced' }])[0]).toEqual(['openai', 'replaced', ['gpt-4o', 'gpt-5']])
    expect(list('llama', [], [{ provider: 'away', problem: 'no connection' }])).toEqual([['p', null, ['llama']]])
  })

  it('says the price of an ordinary request, and unknown where none is known', () => {
    const tier = (above: number, input: number) => ({ above, input, cached: null, output: input * 4 })
    expect(price(model('a', { prices: [tier(200_000, 2), tier(0, 1)] }))).toEqual({ input: 1, output: 4 })
    expect(price(model('a'))).toBeNull()
  })

  it('says what a model lacks only where abilities are known', () => {
    expect(lacks(model('a', { abilities: ['images'] }), 'tools')).toBe(true)
    expect(lacks(model('a', { abilities: ['tools'] }), 'tools')).toBe(false)
    expect(lacks(model('a', { abilities: ['tools'] }), 'images')).toBe(true)
    expect(lacks(model('a'), 'reasoning')).toBe(false)
  })

  it.each([
    ['2026-11-30', false],
    ['2027-01-23', false],
    ['2026-11-01', true],
  ])('says that a model retires on %s', (retiresAt, isPast) => {
    expect(retirement(model('a', { retiresAt }), Date.parse('2026-11-25'))).toMatchObject({ isPast })
  })

  it.each(['2027-02-01', 'soon', null, undefined])('says nothing of %s', (retiresAt) => {
    expect(retirement(model('a', retiresAt === undefined ? {} : { retiresAt }), Date.parse('2026-11-25'))).toBeNull()
  })
})

describe('how much a model thinks', () => {
  it.each([
    ['8000', '8000'],
    [' 8_000 ', '8000'],
    ['16,384', '16384'],
    ['0', null],
    ['-5', null],
    ['1.5', null],
    ['9999999999', null],
    ['', null],
  ])('%j are %j tokens', (text, tokens) => {
    expect(readTokens(text)).toBe(tokens)
  })

  it('is said in words', () => {
    expect([null, 'off', 'max', '8000'].map(effortWords)).toEqual(['As the model does by itself', 'Off', 'As much as it can', 'Up to 8,000 tokens'])
  })
})
