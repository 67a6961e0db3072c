import { expect, it } from 'vitest'
import { triggerAt } from './trigger'

it.each([
  ['@', 'resources', ''],
  ['look at @', 'resources', ''],
  ['look at @no', 'resources', 'no'],
  ['line\n@no', 'resources', 'no'],
  ['/', 'prompts', ''],
  ['/rev', 'prompts', 'rev'],
])('%j asks for %s that fit %j', (text, kind, query) => {
  expect(triggerAt(text, text.length)).toEqual({ kind, query, start: text.length - query.length - 1, end: text.length })
})

it.each(['', 'a@', 'ana@example.org', '@vue/', '@vue/core', '@@', '@ ', 'see /', ' /', '/etc/', '/etc/hosts', '/rev it', 'a/b'])('%j asks for nothing', (text) => {
  expect(triggerAt(text, text.length)).toBe(null)
})

it('asks for nothing in the middle of a word, and before one', () => {
  expect(triggerAt('@note', 3)).toBe(null)
  expect(triggerAt('@ note', 1)?.query).toBe('')
  expect(triggerAt('/etc', 1)).toBe(null)
})
