import { describe, expect, it } from 'vitest'
import { eachDay, filtersOf, queryOf, requestOf } from './filters'

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
