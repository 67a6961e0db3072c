import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SessionLink, type LinkHandlers } from './link'
import { newest, no, settled, sockets, systemReady } from './testing'
import type { Ack } from './link'

vi.mock('socket.io-client', async () => (await import('./testing')).fakeIo())

let link: SessionLink
const handlers = {
  position: vi.fn(() => ({ sessionId: 'ses_1', lastSeq: null, journalId: null })),
  onReady: vi.fn(),
  onEvent: vi.fn(),
  onState: vi.fn(),
  onReason: vi.fn(),
} satisfies LinkHandlers

beforeEach(() => {
  vi.useFakeTimers()
  vi.clearAllMocks()
  sockets.length = 0
  link = new SessionLink(handlers)
  link.open()
})
afterEach(() => {
  link.close()
  vi.useRealTimers()
})

/** What a promise came to so far. */
function watched(answer: Promise<Ack>): { code: string | null } {
  const seen: { code: string | null } = { code: null }
  void answer.then((ack) => (seen.code = ack.ok ? 'ok' : ack.error.code))
  return seen
}

describe('a kept command', () => {
  it('is sent again over as many connections as it takes, with the same payload', async () => {
    const seen = watched(link.keep('message', { text: 'a' }))
    await settled()
    expect(newest().sent).toEqual([])
    await newest().ready()
    await newest().lose()
    await vi.advanceTimersByTimeAsync(2_000)
    await newest().ready()
    expect(newest().sent.map(({ payload }) => payload)).toEqual([{ text: 'a' }, { text: 'a' }])
    await newest().last.answer({ ok: true })
    expect(seen.code).toBe('ok')
  })

  it('waits for the one before it, and not for commands of other names', async () => {
    await newest().ready()
    void link.keep('message', { text: 'a' })
    void link.keep('message', { text: 'b' })
    void link.keep('agent:cancel', { turn: 1 })
    await settled()
    expect(newest().commands()).toEqual(['message', 'agent:cancel'])
    await newest().sent[0]?.answer({ ok: true })
    expect(newest().last.payload).toEqual({ text: 'b' })
  })

  it('is tried again while the store is away, and says why', async () => {
    await newest().ready()
    const seen = watched(link.keep('message', { text: 'a' }))
    await settled()
    await newest().last.answer(no('store_unavailable', 'away'))
    expect(handlers.onReason).toHaveBeenCalledWith('store_unavailable', 'away')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(newest().sent).toHaveLength(2)
    await newest().last.answer(no('invalid_arguments'))
    expect(seen.code).toBe('invalid_arguments')
  })

  it('is answered when the link is closed for good, and never sent again', async () => {
    await newest().ready()
    const [first, second] = [watched(link.keep('message', { text: 'a' })), watched(link.keep('message', { text: 'b' }))]
    await settled()
    link.close()
    await settled()
    expect([first.code, second.code]).toEqual(['left', 'left'])
    expect(watched(link.keep('message', { text: 'c' }))).toBeDefined()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(newest().sent).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('revising', () => {
  it('changes what waits and takes back the rest', async () => {
    const [first, second] = [watched(link.keep('tool:approval', { ids: 'a' })), watched(link.keep('tool:approval', { ids: 'b' }))]
    link.revise('tool:approval', ({ ids }) => (ids === 'a' ? null : { ids: 'bb' }))
    await settled()
    expect(first.code).toBe('taken_back')
    await newest().ready()
    expect(newest().sent.map(({ payload }) => payload)).toEqual([{ ids: 'bb' }])
    await newest().last.answer({ ok: true })
    expect(second.code).toBe('ok')
  })

  it('lets what is on its way arrive, and does not send it again', async () => {
    await newest().ready()
    const [first, second] = [watched(link.keep('tool:approval', { id: 1 })), watched(link.keep('tool:approval', { id: 2 }))]
    await settled()
    link.revise('tool:approval', ({ id }) => (id === 1 ? null : { id }))
    await settled()
    expect(first.code).toBe(null)
    await newest().lose()
    expect(first.code).toBe('taken_back')
    await newest().ready()
    expect(newest().last.payload).toEqual({ id: 2 })
    link.revise('tool:approval', () => null)
    await newest().last.answer({ ok: true })
    expect(second.code).toBe('ok')
    expect(newest().sent).toHaveLength(2)
  })
})

describe('a frame', () => {
  it('above the limit that the server told is refused here: the server would end the connection', async () => {
    await newest().ready({ limits: { frameBytes: 200, commandsPerSocket: 1 } })
    const large = watched(link.keep('message', { text: 'ä'.repeat(100) }))
    const small = watched(link.keep('message', { text: 'a'.repeat(100) }))
    const once = watched(link.request('message:withdraw', { clientMessageId: 'ä'.repeat(100) }))
    await settled()
    expect([large.code, once.code]).toEqual(['too_large', 'too_large'])
    expect(newest().sent.map(({ payload }) => payload)).toEqual([{ text: 'a'.repeat(100) }])
    await newest().last.answer({ ok: true })
    expect(small.code).toBe('ok')
  })
})

describe('a request', () => {
  it('fails at once without a connection', async () => {
    const seen = watched(link.request('turn:retry', {}))
    await settled()
    expect(seen.code).toBe('offline')
    await newest().ready(systemReady())
    await newest().lose()
    const again = watched(link.request('turn:retry', {}))
    await settled()
    expect(again.code).toBe('offline')
    expect(newest().sent).toEqual([])
  })
})
