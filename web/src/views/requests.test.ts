import { beforeEach, expect, it, vi } from 'vitest'
import { callView } from '@/approval/testing'
import { refused, type Ack } from '@/wire/link'
import type { JsonObject } from '@/wire/types'
import { viewCalls, viewReads, type ViewCalls } from './requests'

let sent: [string, JsonObject][]
let answers: Ack[]
let connected: ReturnType<typeof vi.fn<() => Promise<void>>>
let calls: ViewCalls

beforeEach(() => {
  sent = []
  answers = []
  connected = vi.fn(() => Promise.resolve())
  const command = (name: string, payload: JsonObject) => {
    sent.push([name, payload])
    return Promise.resolve(answers.shift() ?? { ok: true } as Ack)
  }
  calls = viewCalls('call_1_0', { command, connected })
})

const asked = (at = 0) => sent[at]?.[1] as { callId: string; viewId: string; requestId: string }
const ended = (change: Parameters<typeof callView>[0], at = 0) => callView({ callId: 'call_2_0', askedBy: { ...asked(at), name: 'chart' }, ...change })

it('gives a view what came of its call, and the results of others to nobody', async () => {
  const answer = calls.call({ name: 'refresh', arguments: { n: 1 } }, 1)
  expect(sent).toEqual([['view:call', { callId: 'call_1_0', viewId: asked().viewId, requestId: asked().requestId, name: 'refresh', arguments: { n: 1 } }]])
  const settled = vi.fn()
  void answer.then(settled)
  calls.look([callView({ output: 'x', status: 'completed', durationMs: 1 }), ended({ askedBy: { ...asked(), name: 'chart', viewId: 'other' }, output: 'theirs' }), ended({ status: 'pending', output: undefined as never })])
  await Promise.resolve()
  expect(settled).not.toHaveBeenCalled()
  calls.look([ended({ status: 'completed', output: 'drawn', durationMs: 5, structured: { points: [1] } })])
  expect(await answer).toEqual({ result: { content: [{ type: 'text', text: 'drawn' }], structuredContent: { points: [1] }, isError: false } })
})

it('tells a view that its call was not allowed as a result that is an error', async () => {
  const answer = calls.call({ name: 'refresh' }, 1)
  calls.look([ended({ status: 'rejected', output: 'Rejected: no' })])
  expect(await answer).toEqual({ result: { content: [{ type: 'text', text: 'Rejected: no' }], isError: true } })
})

it('tells a view why it was not asked about', async () => {
  answers = [
    { ok: false, error: { code: 'invalid_arguments', message: 'no tool', category: 'validation', retryable: false } },
    { ok: false, error: { code: 'too_many_requests', message: 'wait', category: 'transient', retryable: true } },
  ] as Ack[]
  expect(await calls.call({ name: 'x' }, 1)).toEqual({ error: { code: -32602, message: 'no tool' } })
  expect(await calls.call({ name: 'x' }, 2)).toEqual({ error: { code: -32000, message: 'wait' } })
  for (const odd of [{}, { name: '' }, { name: 5 }, { name: 'x'.repeat(200) }, { name: 'x', arguments: [] }, { name: 'x', arguments: 'y' }, { name: 'x', arguments: { text: 'x'.repeat(70_000) } }]) {
    expect(await calls.call(odd as JsonObject, 3)).toMatchObject({ error: { code: -32602 } })
  }
  expect(sent).toHaveLength(2)
})

it('sends the same request again after a connection was lost', async () => {
  answers = [refused('offline')]
  const answer = calls.call({ name: 'refresh' }, 1)
  await vi.waitFor(() => expect(sent).toHaveLength(2))
  expect(connected).toHaveBeenCalledOnce()
  expect(sent[1]).toEqual(sent[0])
  calls.look([ended({ status: 'completed', output: '', durationMs: 1 })])
  expect(await answer).toMatchObject({ result: { isError: false } })
})

it('withdraws what a view does not wait for, and everything when it closes', () => {
  calls.close()
  expect(sent).toEqual([])
  void calls.call({ name: 'refresh' }, 'a')
  calls.forget('b')
  calls.forget('a')
  expect(sent.slice(1)).toEqual([['view:close', { viewId: asked().viewId, requestId: asked().requestId }]])
  calls.close()
  expect(sent.at(-1)).toEqual(['view:close', { viewId: asked().viewId }])
})

it('reads few resources at a time, and says what went wrong', async () => {
  const given: ((value: JsonObject) => void)[] = []
  const read = viewReads(() => new Promise((resolve) => given.push(resolve)))
  for (const odd of [{}, { uri: '' }, { uri: 5 }, { uri: 'x'.repeat(5_000) }]) expect(await read(odd)).toMatchObject({ error: { code: -32602 } })
  const first = read({ uri: 'data://a' })
  for (let n = 0; n < 3; n++) void read({ uri: 'data://b' })
  expect(await read({ uri: 'data://c' })).toMatchObject({ error: { code: -32000 } })
  given[0]?.({ contents: [] })
  expect(await first).toEqual({ result: { contents: [] } })
  expect(await viewReads(() => Promise.reject(new Error('denied')))({ uri: 'data://a' })).toEqual({ error: { code: -32000, message: 'denied' } })
})
