import { describe, expect, it } from 'vitest'
import type { CallStatus } from '@/wire/types'
import type { CallEntry, Entry } from './fold'
import { rows, visible, WINDOW } from './rows'

function callEntry(n: number, status: CallStatus): CallEntry {
  const callId = `call_${n}`
  return { kind: 'call', key: callId, seq: n, at: '', call: { callId, name: 't', server: 's', args: {}, status, edited: false } }
}

const word: Entry = { kind: 'user', key: 'm0', seq: 0, at: '', text: '', author: null, clientMessageId: undefined }
const run = (count: number, status: CallStatus) => Array.from({ length: count }, (_, n) => callEntry(n, status))

describe('rows', () => {
  const cases: [string, Entry[], string[]][] = [
    ['puts neighbouring calls together', [word, ...run(2, 'completed')], ['user', 'calls 2']],
    ['leaves five finished calls open', run(5, 'completed'), ['calls 5']],
    ['folds six finished calls', run(6, 'completed'), ['calls 6 folded']],
    ['keeps a run open while one is running', [...run(6, 'completed'), callEntry(7, 'executing')], ['calls 7']],
    ['never hides an unknown outcome', [...run(6, 'completed'), callEntry(7, 'unknown')], ['calls 7']],
  ]
  for (const [name, entries, expected] of cases) {
    it(name, () => {
      const words = rows(entries).map((row) =>
        row.kind === 'calls' ? `calls ${row.calls.length}${row.isFoldable ? ' folded' : ''}` : row.kind,
      )
      expect(words).toEqual(expected)
    })
  }
})

describe('visible', () => {
  const all = Array.from({ length: 400 }, (_, n) => n)
  it('draws the end', () => expect(visible(all, null)).toMatchObject({ start: 400 - WINDOW, end: 400 }))
  it('never draws more than the window', () => expect(visible(all, 300).items).toHaveLength(WINDOW))
  it('draws a short list whole', () => expect(visible([1, 2], null)).toEqual({ items: [1, 2], start: 0, end: 2 }))
})
