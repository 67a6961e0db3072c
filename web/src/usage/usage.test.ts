import { mount } from '@vue/test-utils'
import { describe, expect, it } from 'vitest'
import { i18n } from '@/locales'
import type { UsageItem } from '@/wire/restTypes'
import { eachDay, filtersOf, queryOf, requestOf } from './filters'
import UsageChart, { costByModel, tokensByPart, trendOf } from './UsageChart.vue'

const NOW = new Date('2026-11-25T23:30:00Z')
const read = (query: Record<string, string>) => filtersOf(query, NOW)

describe('the filters of an address', () => {
  it('are the last thirty days of UTC by day where it says nothing', () => {
    const filters = read({})
    expect(filters).toMatchObject({ range: '30', from: '2026-10-27', to: '2026-11-25', by: 'day', sort: 'name', order: 'desc' })
    expect(eachDay(filters)).toHaveLength(30)
    expect(queryOf(filters)).toEqual({})
  })

  it('come back as the same address', () => {
    for (const query of [
      { by: 'model', sort: 'tokens', order: 'asc' },
      { range: '7', model: 'openai/gpt-4o', person: `usr_${'a'.repeat(32)}` },
      { range: 'other', from: '2026-01-01', to: '2026-01-31', by: 'session', cursor: '50' },
      { by: 'tool', sort: 'duration', order: 'desc' },
    ]) {
      expect(queryOf(read(query as unknown as Record<string, string>))).toEqual(query)
    }
  })

  it('leave out what makes no sense', () => {
    const filters = read({ range: '8', by: 'week', sort: 'duration', order: 'up', person: 'ana', cursor: '-1' })
    expect(filters).toMatchObject({ range: '30', by: 'day', sort: 'name', order: 'desc', person: '', cursor: '' })
    expect(read({ by: 'tool', model: 'a/b', sort: 'cost' })).toMatchObject({ model: '', sort: 'count' })
    expect(read({ range: 'other', from: '2026-02-02', to: '2026-02-01' })).toMatchObject({ from: '2026-02-01', to: '2026-02-02' })
  })

  it('ask for the model by its provider', () => {
    const filters = read({ model: 'openrouter/meta/llama' })
    expect(requestOf(filters)).toMatchObject({ provider: 'openrouter', model: 'meta/llama', by: 'day' })
    expect(requestOf(read({ by: 'server' }))).not.toHaveProperty('provider')
  })
})

describe('series', () => {
  const DAYS = ['2026-11-23', '2026-11-24']

  function item(day: string, model: string, costUsd: number | null): UsageItem {
    const parts = { system: 5, tools: 0, history: 3, results: 0, message: 2, attachments: 0, reasoning: 0, unknown: 0 }
    const requests = {
      requests: 1, inputTokens: 10, cachedTokens: 0, cacheWriteTokens: 0, cacheWriteLongTokens: 0, outputTokens: 4, reasoningTokens: 0, totalTokens: 14,
      estimatedRequests: 0, estimatedTokens: 0, costUsd, unpricedRequests: costUsd === null ? 1 : 0, parts,
    }
    return { day, provider: 'p', model, requests }
  }

  it('stacks what models cost, the dearest first, and knows what nobody knows', () => {
    const items = [item('2026-11-23', 'cheap', 0.1), item('2026-11-24', 'dear', 2), item('2026-11-24', 'unknown', null), item('2026-01-01', 'old', 9)]
    const none = [false, false]
    expect(costByModel(DAYS, items)).toEqual([
      { name: 'p/dear', values: [0, 2], unknown: none },
      { name: 'p/cheap', values: [0.1, 0], unknown: none },
      { name: 'p/unknown', values: [0, 0], unknown: [false, true] },
    ])
  })

  it('puts many models together, and loses none of what they cost', () => {
    const items = Array.from({ length: 9 }, (_, n) => item('2026-11-23', `m${n}`, n + 1))
    const series = costByModel(DAYS, [...items, item('2026-11-24', 'm', null)])
    expect(series).toHaveLength(6)
    expect(series.at(-1)).toEqual({ name: '5 other models', values: [1 + 2 + 3 + 4, 0], unknown: [false, true] })
  })

  it('tells what the tokens of each day were for', () => {
    expect(tokensByPart(DAYS, [item('2026-11-24', '', 1)])).toEqual([
      { name: 'System prompt', values: [0, 5] },
      { name: 'Earlier messages', values: [0, 3] },
      { name: 'Newest message', values: [0, 2] },
      { name: 'Output', values: [0, 4] },
    ])
  })
})

describe('the chart', () => {
  const show = () =>
    mount(UsageChart, {
      props: { title: 'Cost', days: ['2026-11-23', '2026-11-24'], series: [{ name: 'dear', values: [1, 2] }, { name: 'odd', values: [0, 0], unknown: [false, true] }], words: (value: number) => `$${value}`, file: 'x.csv' },
      global: { plugins: [i18n] },
    })

  it('compares the newer half of the days with the older one', () => {
    expect(trendOf([9, 1, 1, 2, 1])).toEqual({ share: 0.5, days: 2 })
    expect([trendOf([0, 5]), trendOf([5]), trendOf([])]).toEqual([null, null, null])
  })

  it('says the sum, that it is not all where prices are unknown, and the trend', () => {
    expect(show().get('.sum').text()).toBe('at least $3 100 % more than in the day before')
  })

  it('says the values of a day that the arrows went to', async () => {
    const chart = show()
    const told = () => chart.get('.told').text()
    const press = (key: string) => chart.get('.plot').trigger('keydown', { key })
    expect(told()).toBe('')
    await press('ArrowLeft')
    expect(told()).toMatch(/Nov 24, 2026\s+\$2.*dear\s+\$2.*odd\s+unknown/s)
    await press('ArrowLeft')
    expect(told()).toMatch(/Nov 23, 2026\s+\$1\s*dear\s+\$1$/)
    await press('ArrowLeft')
    expect(told()).toContain('Nov 23')
    await press('Escape')
    expect(told()).toBe('')
  })
})
