import { describe, expect, it } from 'vitest'
import type { CallStatus } from '@/wire/types'
import type { CallEntry, Entry } from './conversation'
import { firstOfDays, marginsOf, outcomes, rows, visible, WINDOW, type Row } from './rows'

function callEntry(n: number, status: CallStatus): CallEntry {
  const callId = `call_${n}`
  return { kind: 'call', key: callId, seq: n, at: '', call: { callId, name: 't', server: 's', args: {}, status, edited: false } }
}

const word: Entry = { kind: 'user', key: 'm0', seq: 0, at: '', text: '', author: null, clientMessageId: undefined }
const run = (count: number, status: CallStatus) => Array.from({ length: count }, (_, n) => callEntry(n, status))

describe('rows', () => {
  const cases: [string, Entry[], string[]][] = [
    ['puts neighbouring calls together, and folds them', [word, ...run(2, 'completed')], ['user', 'calls 2 folded']],
    ['leaves one finished call open', run(1, 'completed'), ['calls 1']],
    ['folds calls that ended in different ways', [...run(4, 'completed'), callEntry(5, 'rejected')], ['calls 5 folded']],
    ['keeps a run open while one waits', [...run(2, 'completed'), callEntry(3, 'pending')], ['calls 3']],
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

describe('where conversations part', () => {
  const at = (seq: number): Entry => ({ ...word, key: `m${seq}`, seq }) as Entry
  const seen = (entries: Entry[], seqs: number[]) =>
    rows(entries, undefined, seqs.map((seq) => ({ seq, ids: ['a', 'b'] }))).map((row) => (row.kind === 'branch' ? row.key : String('seq' in row ? row.seq : '')))

  it('stands before the first entry that not all of them have', () => {
    expect(seen([at(1), at(3), at(5)], [2, 3])).toEqual(['1', 'b2', '3', 'b3', '5'])
  })
  it('stands above the first message where nothing is shared', () => {
    expect(seen([at(1), at(3)], [0])).toEqual(['b0', '1', '3'])
  })
  it('is not drawn for what lies on an older page, or where nothing follows', () => {
    expect(seen([at(7), at(9)], [2, 9])).toEqual(['7', '9'])
  })
})

describe('visible', () => {
  const all = Array.from({ length: 400 }, (_, n) => n)
  it('draws the end', () => expect(visible(all, null)).toMatchObject({ start: 400 - WINDOW, end: 400 }))
  it('never draws more than the window', () => expect(visible(all, 300).items).toHaveLength(WINDOW))
  it('draws a short list whole', () => expect(visible([1, 2], null)).toEqual({ items: [1, 2], start: 0, end: 2 }))
})

describe('outcomes', () => {
  const ended = (n: number, status: CallStatus, exitCode?: number) => {
    const entry = callEntry(n, status)
    return exitCode === undefined ? entry : { ...entry, call: { ...entry.call, exitCode } }
  }

  it('counts an exit code that is not 0 beside what is done', () => {
    const calls = [ended(1, 'completed', 0), ended(2, 'completed'), ended(3, 'completed', 3), ended(4, 'completed', 3), ended(5, 'completed', 1), ended(6, 'failed')]
    expect(outcomes(calls).map(({ status, exitCode, n }) => `${n} ${exitCode ?? status}`)).toEqual(['2 completed', '2 3', '1 1', '1 failed'])
  })
})

describe('versions of an answer', () => {
  const said = (key: string, seq: number, version?: { group: string; n: number }): Entry =>
    ({ kind: 'said', key, seq, at: '', text: key, reasoning: '', reasoningMs: null, role: 'answer', spent: null, ...(version ? { version } : {}) }) as Entry
  const again = [word, said('a', 1, { group: 'a', n: 1 }), said('b', 2, { group: 'a', n: 2 })]
  const seen = (all: Row[]) => all.map((row) => (row.kind === 'versions' ? `${row.n} of ${row.of}` : row.key))

  it('shows the newest one with a switch above it', () => {
    expect(seen(rows(again, { of: new Map([['a', 2]]) }))).toEqual(['m0', '2 of 2', 'b'])
  })
  it('shows an older one where it is chosen', () => {
    expect(seen(rows(again, { of: new Map([['a', 2]]), shown: new Map([['a', 1]]) }))).toEqual(['m0', '1 of 2', 'a'])
  })
  it('keeps the switch at the end while the newest has said nothing', () => {
    const before = again.slice(0, 2)
    expect(seen(rows(before, { of: new Map([['a', 2]]), open: 'a' }))).toEqual(['m0', '2 of 2'])
  })
  it('shows one version without a switch', () => {
    expect(seen(rows([word, said('b', 2, { group: 'a', n: 1 })], { of: new Map([['a', 1]]) }))).toEqual(['m0', 'b'])
  })
})

describe('margins', () => {
  const at = (minute: number, second = 0) => new Date(Date.UTC(2026, 10, 23, 10, minute, second)).toISOString()
  const user = (key: string, when: string, id: string | null = 'ana'): Row => ({ kind: 'user', key, seq: 0, at: when, text: '', author: id === null ? null : { id, name: id }, clientMessageId: undefined })
  const said = (key: string, when: string): Row => ({ kind: 'said', key, seq: 0, at: when, text: '', reasoning: '', reasoningMs: null, role: 'said', spent: null })
  const calls = (key: string, when: string): Row => ({ kind: 'calls', key, calls: [{ ...callEntry(1, 'completed'), at: when }], isFoldable: false })

  it('tell author and minute once', () => {
    const all = [user('1', at(0)), user('2', at(0, 40), null), said('3', at(0, 50)), calls('4', at(0, 55)), said('5', at(1)), user('6', at(1), 'bo')]
    const margins = marginsOf(all, 'ana')
    const words = all.map(({ key }) => [margins.get(key)?.author ? 'author' : '', margins.get(key)?.minute ? 'minute' : ''].join(' ').trim())
    expect(words).toEqual(['author minute', '', 'author minute', '', 'minute', 'author minute'])
  })
  it('tell them again after a note', () => {
    const note: Row = { kind: 'note', key: 'n', seq: 0, at: at(0), note: { what: 'stopped' } }
    expect(marginsOf([said('1', at(0)), note, said('2', at(0))], 'ana').get('2')).toEqual({ author: true, minute: true })
  })
})

describe('the days of a transcript', () => {
  const at = (key: string, day: number, hour = 12) => ({ key, at: new Date(2026, 0, day, hour).toISOString() })

  it('stand above the first entry of each, and above the first of all unless it is of today', () => {
    const all = [at('a', 1), at('b', 1, 23), { key: 'branch' }, at('c', 2, 0), at('d', 5)]
    expect([...firstOfDays(all, new Date(2026, 0, 5)).keys()]).toEqual(['a', 'c', 'd'])
    expect([...firstOfDays([at('a', 5), at('b', 5)], new Date(2026, 0, 5)).keys()]).toEqual([])
    expect([...firstOfDays([at('a', 5), at('b', 6)], new Date(2026, 0, 5)).keys()]).toEqual(['b'])
  })
})
