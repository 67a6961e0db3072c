import { describe, expect, it } from 'vitest'
import type { QueueCall, RunningTurn, StoredEvent } from '@/wire/types'
import { EMPTY, type Conversation } from './conversation'
import { arrival, fold, mergeQueue, withWaiting } from './fold'
import { applyDelta, withRunning, type Delta } from './streaming'

const ana = { id: 'u1', name: 'Ana' }

/** Events as a session stores them: dense numbers, the object last. */
function history(...events: [string, ...unknown[]][]): StoredEvent[] {
  return events.map(([event, ...args], index) => {
    const seq = index + 1
    const at = `2026-01-01T00:00:${String(seq).padStart(2, '0')}Z`
    const last = { ...(args.pop() as object), seq, at }
    return { seq, at, event, args: [...args, last] }
  })
}

/** One short word per entry: what a reader sees, in order. */
function seen({ entries }: Conversation): string[] {
  return entries.map((entry) => {
    if (entry.kind === 'user') return `user ${entry.text}`
    if (entry.kind === 'said') return `${entry.role} ${entry.text}`
    if (entry.kind === 'call') return `call ${entry.call.name} ${entry.call.status}`
    return `note ${entry.note.what}`
  })
}

const ask: [string, ...unknown[]] = ['user:message', 'hi', { author: ana, clientMessageId: 'm1' }]
const think: [string, ...unknown[]] = ['agent:thinking', { turn: 1, iteration: 1, model: 'm', took: [1] }]
const call = { callId: 'call_1_0', name: 'write_file', server: 'files', args: { path: 'a' } }
const say: [string, ...unknown[]] = ['agent:message', 'I write', { turn: 1, iteration: 1, calls: [call] }]

describe('fold', () => {
  const cases: [string, [string, ...unknown[]][], string[]][] = [
    ['a fork', [ask, think, ['session:forked', { sessionId: 'ses_1', fromSeq: 2 }]], ['user hi', 'note forked']],
    ['a plain turn', [ask, think, ['agent:response', 'yes', { turn: 1 }]], ['user hi', 'answer yes']],
    ['a call that is asked', [ask, think, say], ['user hi', 'said I write', 'call write_file pending']],
    [
      'a call that is approved and ends',
      [
        ask,
        think,
        say,
        ['tool:decided', { callId: 'call_1_0', approved: true, by: ana, scope: 'once', edited: false }],
        ['tool:started', { callId: 'call_1_0', name: 'write_file', server: 'files' }],
        ['tool:output', 'ok', { callId: 'call_1_0', status: 'completed', durationMs: 5 }],
      ],
      ['user hi', 'said I write', 'call write_file completed'],
    ],
    [
      'an approval that is taken back',
      [
        ask,
        think,
        say,
        ['tool:decided', { callId: 'call_1_0', approved: true, by: ana, scope: 'once', edited: false }],
        ['tool:decided', { callId: 'call_1_0', approved: false, by: ana, scope: 'taken_back', edited: false }],
      ],
      ['user hi', 'said I write', 'call write_file pending'],
    ],
    [
      'an outcome whose call was asked on an older page',
      [['tool:output', 'ok', { ...call, status: 'unknown' }]],
      ['call write_file unknown'],
    ],
    [
      'a stopped turn keeps what was read',
      [ask, think, ['agent:cancelled', { turn: 1, text: 'half' }]],
      ['user hi', 'cut half', 'note stopped'],
    ],
    [
      'a failed turn',
      [ask, think, ['agent:error', 'busy', { turn: 1, code: 'provider_unavailable', retryable: true }]],
      ['user hi', 'note failed'],
    ],
    [
      'a message sent meanwhile stands where it was read',
      [
        ask,
        think,
        ['user:message', 'also', { author: ana, clientMessageId: 'm2' }],
        say,
        ['agent:thinking', { turn: 1, iteration: 2, took: [3] }],
      ],
      ['user hi', 'said I write', 'call write_file pending', 'user also'],
    ],
    [
      'a withdrawn message is gone',
      [ask, think, ['user:message', 'also', { clientMessageId: 'm2' }], ['session:changed', { withdrawn: 'm2' }]],
      ['user hi'],
    ],
    ['a reset', [ask, ['history:reset', {}]], ['user hi', 'note reset']],
  ]
  for (const [name, events, expected] of cases) {
    it(name, () => expect(seen(fold(EMPTY, history(...events)))).toEqual(expected))
  }

  it('knows how much the model may think, from the model that was chosen with it', () => {
    const chosen = (...efforts: unknown[]) => fold(EMPTY, history(...efforts.map((effort): [string, object] => ['session:changed', { model: 'm', provider: 'p', effort }])))
    expect(EMPTY.effort).toBeUndefined()
    expect(chosen('high')).toMatchObject({ model: 'm', effort: 'high' })
    expect(chosen('high', null).effort).toBeNull()
    expect(chosen(undefined).effort).toBeUndefined()
    expect(chosen('8000').entries.at(-1)).toMatchObject({ note: { what: 'model', model: 'm', effort: '8000' } })
  })

  it('gives the same for any split of the events', () => {
    const events = history(ask, think, say, ['tool:output', 'ok', { callId: 'call_1_0', status: 'failed' }])
    const whole = fold(EMPTY, events)
    for (let cut = 0; cut <= events.length; cut++) {
      expect(fold(fold(EMPTY, events.slice(0, cut)), events.slice(cut))).toEqual(whole)
    }
  })

  it('ignores an event that it has folded', () => {
    const events = history(ask, think)
    const once = fold(EMPTY, events)
    expect(fold(once, events)).toEqual(once)
  })

  it('does not show the error that repeats a failed call', () => {
    const events = history(ask, think, say, ['tool:output', 'no', { callId: 'call_1_0', status: 'failed' }])
    const error = { seq: 4, at: '', event: 'agent:error', args: ['no', { callId: 'call_1_0', seq: 4 }] }
    expect(seen(fold(EMPTY, [...events, error]))).toEqual(seen(fold(EMPTY, events)))
  })

  it('leaves what it was given alone', () => {
    const before = fold(EMPTY, history(ask))
    const copy = structuredClone(before)
    fold(before, [{ seq: 2, at: '', event: 'history:reset', args: [{ seq: 2 }] }])
    expect(before).toEqual(copy)
  })

  it('never gives two entries one key', () => {
    const retried = fold(EMPTY, history(ask, think, ['agent:response', 'a', { turn: 1 }], think, ['agent:response', 'b', { turn: 1 }]))
    const keys = retried.entries.map((entry) => entry.key)
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('remembers both arguments of an edited call', () => {
    const folded = fold(EMPTY, history(ask, think, say))
    const queued = { ...call, status: 'approved', edited: true, args: { path: 'b' }, originalArgs: { path: 'a' } }
    const [, , entry] = mergeQueue(folded, [queued as unknown as QueueCall]).entries
    expect(entry).toMatchObject({ call: { args: { path: 'b' }, originalArgs: { path: 'a' }, edited: true } })
  })

  it('shows the arguments that ran, whoever changed them, beside those that were asked for', () => {
    const bo = { id: 'bo', name: 'Bo' }
    const decision = { callId: 'call_1_0', approved: true, by: ana, scope: 'once', edited: true, args: { path: 'b' }, editedBy: bo }
    const changed = { originalArgs: { path: 'a' }, args: { path: 'b' }, editedBy: bo, edited: true }
    const asked = history(ask, think, say)
    expect(fold(EMPTY, history(ask, think, say, ['tool:decided', decision])).entries[2]).toMatchObject({ call: changed })
    // The card came when they were changed already.
    const card = { ...call, callId: 'call_1_0', args: { path: 'b' }, originalArgs: { path: 'a' } }
    const late = fold(fold(EMPTY, asked), [
      { seq: 4, at: '', event: 'tool:approval_required', args: [{ ...card, seq: 4 }] },
      { seq: 5, at: '', event: 'tool:decided', args: [{ ...decision, seq: 5 }] },
    ])
    expect(late.entries[2]).toMatchObject({ call: changed })
  })

  it('moves a message that the server still holds to the waiting ones', () => {
    const folded = fold(EMPTY, history(ask))
    const { entries, waiting } = withWaiting(folded, [{ text: 'hi', seq: 1 }])
    expect([entries.length, waiting.length]).toEqual([0, 1])
  })
})

describe('arrival', () => {
  it.each([
    [4, 4, 'known'],
    [4, 5, 'next'],
    [4, 6, 'gap'],
  ] as const)('with %i folded, %i is %s', (known, seq, expected) => expect(arrival(known, seq)).toBe(expected))
})

describe('applyDelta', () => {
  const delta = (text: string, offset: number, change: Partial<Delta> = {}): Delta => ({
    turn: 1,
    iteration: 1,
    attempt: 1,
    kind: 'text',
    text,
    offset,
    ...change,
  })

  function check(deltas: Delta[], expected: string) {
    let running = null as Conversation['running']
    const marks: string[] = []
    for (const one of deltas) {
      const result = applyDelta(running, one, 0)
      running = result.running
      if (result.isGap) marks.push('gap')
      else if (running?.restarted) marks.push('restarted')
    }
    expect([running?.text ?? '', ...marks].join(' ')).toBe(expected)
  }

  it('appends', () => check([delta('ab', 0), delta('cd', 2)], 'abcd'))
  it('cuts an overlap', () => check([delta('abc', 0), delta('bcd', 1)], 'abcd'))
  it('ignores a repeat', () => check([delta('abc', 0), delta('ab', 0)], 'abc'))
  it('reports a gap and keeps the text', () => check([delta('ab', 0), delta('ef', 4)], 'ab gap'))
  it('reports a gap at the start', () => check([delta('cd', 2)], ' gap'))
  it('replaces by a newer attempt', () =>
    check([delta('ab', 0), delta('x', 0, { attempt: 2 })], 'x restarted'))
  it('ignores an older attempt', () => check([delta('x', 0, { attempt: 2 }), delta('ab', 0)], 'x'))
  it('begins a newer iteration anew', () => check([delta('ab', 0), delta('x', 0, { iteration: 2 })], 'x'))
  it('counts reasoning apart', () => check([delta('why', 0, { kind: 'reasoning' }), delta('a', 0)], 'a'))

  it('ignores what trickles in after its entry', () => {
    const said = fold(EMPTY, history(ask, think, say))
    expect(applyDelta(said.running, delta('late', 7), 0)).toEqual({ running: said.running, isGap: false })
  })

  it('goes on from what the server had streamed', () => {
    const turn: RunningTurn = { turn: 1, iteration: 1, attempt: 1, phase: 'model', text: 'ab', reasoning: '', since: '' }
    const { running } = withRunning(EMPTY, turn)
    expect(applyDelta(running, delta('cd', 2), 0).running?.text).toBe('abcd')
  })
})

describe('reasoning', () => {
  const thought = { text: 'look first', durationMs: 1_200, leftOutBytes: 7 }

  it('of the journal is read without having watched', () => {
    const events = history(ask, think, ['agent:message', 'I write', { turn: 1, iteration: 1, calls: [], reasoning: thought }], ['agent:thinking', { turn: 1, iteration: 2 }], ['agent:response', 'yes', { turn: 1, reasoning: { text: 'then say so', durationMs: 5 } }])
    expect(fold(EMPTY, events).entries).toMatchObject([
      { kind: 'user' },
      { reasoning: 'look first', reasoningMs: 1_200, reasoningLeftOut: 7 },
      { reasoning: 'then say so', reasoningMs: 5, reasoningLeftOut: 0 },
    ])
  })

  it('of a stopped answer that had not begun to speak is kept', () => {
    const { entries } = fold(EMPTY, history(ask, think, ['agent:cancelled', { turn: 1, text: null, reasoning: thought }]))
    expect(entries).toMatchObject([{ kind: 'user' }, { role: 'cut', text: '', reasoning: 'look first' }, { kind: 'note' }])
  })

  it('that was only watched stays, as from a server that keeps none', () => {
    const watched = withRunning(fold(EMPTY, history(ask, think)), { turn: 1, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: 'hm', since: '' })
    const answered = { seq: 3, at: '', event: 'agent:response', args: ['yes', { turn: 1 }] }
    expect(fold(watched, [answered]).entries[1]).toMatchObject({ reasoning: 'hm', reasoningLeftOut: 0 })
  })
})

describe('an answer asked for again', () => {
  const answer = (turn: number, text: string): [string, ...unknown[]] => ['agent:response', text, { turn }]
  const again = (turn: number): [string, ...unknown[]] => ['agent:thinking', { turn, iteration: 1, took: [], retry: true }]
  const versions = (state: Conversation) => state.entries.map((entry) => (entry.version ? `${entry.version.n}` : '-')).join('')
  const counts = (state: Conversation) => [...state.versions.values()]

  it('is a version of the one that it replaces', () => {
    const state = fold(EMPTY, history(ask, think, answer(1, 'one'), again(2), answer(2, 'two'), again(3), answer(3, 'three')))
    expect([versions(state), counts(state)]).toEqual(['-123', [3]])
  })
  it('takes its calls along, and leaves those before the answer alone', () => {
    const state = fold(EMPTY, history(ask, think, say, ['agent:thinking', { turn: 1, iteration: 2 }], answer(1, 'one'), again(2), ['agent:message', 'more', { turn: 2, iteration: 1, calls: [{ ...call, callId: 'call_2_0' }] }]))
    expect(versions(state)).toBe('---122')
  })
  it('ends with the next message', () => {
    const state = fold(EMPTY, history(ask, think, answer(1, 'one'), again(2), answer(2, 'two'), ask, ['agent:thinking', { turn: 3, iteration: 1 }], answer(3, 'other')))
    expect(versions(state)).toBe('-12--')
  })
  it('counts while it has said nothing yet, and knows a failed one', () => {
    const running = fold(EMPTY, history(ask, think, answer(1, 'one'), again(2)))
    expect([versions(running), counts(running)]).toEqual(['-1', [2]])
    const failed = fold(EMPTY, history(ask, think, answer(1, 'one'), again(2), ['agent:error', 'busy', { turn: 2, code: 'x' }], again(3), answer(3, 'two')))
    expect([versions(failed), counts(failed)]).toEqual(['-123', [3]])
  })
  it('after a failure is no version: nothing was answered', () => {
    const state = fold(EMPTY, history(ask, think, ['agent:error', 'busy', { turn: 1, code: 'x' }], again(2), answer(2, 'one')))
    expect([versions(state), counts(state)]).toEqual(['---', []])
  })
})
