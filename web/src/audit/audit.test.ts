import { describe, expect, it } from 'vitest'
import type { AuditRecord } from '@/wire/restTypes'
import { filtersOf, isEverything, queryOf, requestOf } from './filters'
import './texts.en.json'
import { actorOf, subjectOf, verdictOf } from './words'

describe('the filters of an address', () => {
  it('are everything of the team where it says nothing', () => {
    const filters = filtersOf({})
    expect(isEverything(filters)).toBe(true)
    expect(queryOf(filters)).toEqual({})
  })

  it('come back as the same address', () => {
    for (const query of [
      { scope: 'installation' },
      { act: 'call', verdict: 'approved', tool: 'write_file', from: '2026-11-01', to: '2026-11-02' },
      { person: `usr_${'a'.repeat(32)}`, session: `ses_${'b'.repeat(32)}`, cursor: '1.a1' },
    ]) {
      expect(queryOf(filtersOf(query as unknown as Record<string, string>))).toEqual(query)
    }
  })

  it('leave out what makes no sense', () => {
    const filters = filtersOf({ scope: 'world', person: 'ana', session: 'x', verdict: 'perhaps', act: 'A b', from: 'now' })
    expect(isEverything(filters)).toBe(true)
    expect(filters.scope).toBe('tenant')
  })

  it('ask for whole days', () => {
    const { from, to } = requestOf(filtersOf({ from: '2026-11-01', to: '2026-11-01' }))
    expect(new Date(to ?? '').getTime() - new Date(from ?? '').getTime()).toBe(86_400_000)
  })
})

describe('a record', () => {
  const item = (record: object, person: AuditRecord['person'] = null) => ({ id: '1', at: '2026-11-29T08:00:00Z', act: 'x', person, session: null, link: null, record }) as unknown as AuditRecord

  it('says who did what', () => {
    expect(actorOf(item({}, { id: 'usr_1', name: 'Ann' }))).toBe('Ann')
    expect(actorOf(item({}, { id: 'usr_1', name: null }))).toBe('usr_1')
    expect(actorOf(item({ by: { kind: 'rule', name: 'reads' } }))).toBe('the rule reads')
    expect(actorOf(item({ by: { kind: 'gateway' } }))).toBe('the gateway')
    expect(subjectOf(item({ call: { server: 'sandbox', tool: 'write_file' } }))).toBe('sandbox/write_file')
    expect(subjectOf(item({ on: { id: 'skl_1' }, details: { name: 'review' } }))).toBe('review')
    expect(subjectOf(item({ on: { id: 'TOKEN' } }))).toBe('TOKEN')
    expect(verdictOf(item({ verdict: 'approved' }))).toBe('approved')
  })
})
