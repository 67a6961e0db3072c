import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { queueCall } from '@/approval/testing'
import { usePerson } from '@/stores/person'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import { newest, no, settled, sockets, systemReady } from '@/wire/testing'
import type { RunningTurn, StoredEvent, SystemReady } from '@/wire/types'
import { failureWords } from './commands'
import { useSession } from './session'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

let session: ReturnType<typeof useSession>

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [], nextCursor: null })
  reload()
})
afterEach(() => {
  session.close()
  localStorage.clear()
  sessionStorage.clear()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** What a person keeps over it is what the browser stores. */
function reload(user: string | null = 'ana'): void {
  sockets.length = 0
  setActivePinia(createPinia())
  if (user !== null) usePerson().enter(me(user))
  session = useSession()
}

function me(id: string): Me {
  return {
    user: { id, name: id, role: 'member', installationAdmin: false, rights: [] },
    tenant: { id: 't', name: 't' },
    csrfToken: 'x',
    installation: { name: 'Sepal', version: '1.0.0' },
    authMode: 'password',
    encrypted: true,
  }
}

function event(seq: number, name: string, ...args: unknown[]): StoredEvent {
  const at = `2026-01-01T00:00:${String(seq).padStart(2, '0')}Z`
  const last = { ...(args.pop() as object), seq, at }
  return { seq, at, event: name, args: [...args, last] }
}

const turn: RunningTurn = { turn: 3, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: '', since: '2026-01-01T00:00:00Z' }

function withState(change: Partial<SystemReady['state']>): Partial<SystemReady> {
  return { state: { ...systemReady().state, ...change } }
}

async function opened(change: Partial<SystemReady> = {}): Promise<void> {
  session.open('ses_1')
  await newest().ready(change)
}

/** Until the page tries what it keeps once more. */
const later = () => vi.advanceTimersByTimeAsync(2_000)
const words = () => (session.failure ? failureWords(session.failure) : '')

describe('a decision', () => {
  const asked = withState({ queue: { calls: [queueCall('a'), queueCall('b')], seq: 0 } })
  const approve = { callId: 'a', approved: true, digest: 'digest-a' }

  it('that was not sent is replaced by a newer one of the same call', async () => {
    await opened(asked)
    await newest().lose()
    void session.decide(approve)
    await settled()
    expect([...session.deciding]).toEqual(['a'])
    void session.decide({ callId: 'a', approved: false, reason: 'no' })
    await newest().ready(asked)
    expect(newest().sent.map(({ payload }) => payload)).toEqual([{ callId: 'a', approved: false, reason: 'no', scope: 'once' }])
    await newest().last.answer({ ok: true })
    expect([...session.deciding]).toEqual([])
    expect(words()).toBe('')
  })

  it('that was not sent can be taken back, and then nothing is sent', async () => {
    await opened(asked)
    await newest().lose()
    void session.decide(approve)
    session.undecide('a')
    await newest().ready(asked)
    expect(newest().sent).toEqual([])
    expect([...session.deciding]).toEqual([])
    expect(words()).toBe('')
  })

  it('of one call takes it out of a batch that was not sent, and a batch leaves it as it was decided', async () => {
    await opened(asked)
    await newest().lose()
    void session.decideAll({ callIds: ['a', 'b'], approved: true })
    void session.decide({ callId: 'a', approved: false })
    void session.decideAll({ callIds: ['a', 'b'], approved: true })
    await newest().ready(asked)
    expect(newest().sent.map(({ command, payload }) => [command, payload.callIds ?? payload.callId, payload.approved])).toEqual([
      ['tool:approval_all', ['b'], true],
      ['tool:approval', 'a', false],
    ])
  })

  it('that was refused is told, and the word goes with the next one', async () => {
    await opened(asked)
    void session.decide(approve)
    await settled()
    await newest().last.answer(no('changed_since_shown'))
    expect(words()).toBe('The call changed since it was shown. Look at it again.')
    void session.decide(approve)
    await settled()
    expect(words()).toBe('')
  })

  it('that was not sent before another session was opened is told there, with the name of its own', async () => {
    await opened({ ...asked, title: 'Release' })
    await newest().lose()
    void session.decide(approve)
    session.open('ses_2')
    await settled()
    expect(words()).toContain('“Release”')
    expect([...session.deciding]).toEqual([])
    await sockets[0]?.ready(asked)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(sockets[0]?.sent).toEqual([])
    session.open('ses_1')
    await settled()
    expect(words()).toBe('')
  })
})

describe('a message', () => {
  it('that no frame can hold is not taken, so that the composer keeps it', async () => {
    await opened({ limits: { frameBytes: 1_000, commandsPerSocket: 1 } })
    expect(session.send('"'.repeat(600))?.code).toBe('too_large')
    expect(session.unsent).toEqual([])
    expect(session.send('"'.repeat(300))).toBe(null)
    expect(session.send('ä'.repeat(500))?.code).toBe('too_large')
  })

  it('above the 256 KiB that one message may have is not taken, however large the frame', async () => {
    await opened({ limits: { frameBytes: Number(2n ** 64n - 1n), commandsPerSocket: 1 } })
    expect(session.send('ä'.repeat(128 * 1024))).toBe(null)
    expect(session.send(`${'ä'.repeat(128 * 1024)}a`)?.code).toBe('too_large')
  })

  it('that was kept though it is too large is refused at the next opening, and the ones after it go out', async () => {
    localStorage.setItem('sepal.unsent.ana.ses_1', JSON.stringify([{ clientMessageId: 'm1', text: 'x'.repeat(2_000) }, { clientMessageId: 'm2', text: 'y' }]))
    await opened({ limits: { frameBytes: 1_000, commandsPerSocket: 1 } })
    await settled()
    expect(newest().sent.map(({ payload }) => payload)).toEqual([{ clientMessageId: 'm2', text: 'y' }])
    expect(session.unsent.map(({ clientMessageId, refused }) => [clientMessageId, refused?.code])).toEqual([['m1', 'too_large'], ['m2', undefined]])
  })

  it('that is not confirmed can be taken back, and is not sent again, nor after a reload', async () => {
    await opened()
    await newest().lose()
    session.send('first')
    session.send('second')
    expect(await session.unsend(session.unsent[0]?.clientMessageId ?? '')).toBe(true)
    await newest().ready()
    expect(newest().sent.map(({ payload }) => payload.text)).toEqual(['second'])
    reload()
    await opened()
    expect(newest().sent.map(({ payload }) => payload.text)).toEqual(['second'])
  })

  it('that arrives while it is taken back stays sent', async () => {
    await opened()
    session.send('first')
    await settled()
    const gone = session.unsend(session.unsent[0]?.clientMessageId ?? '')
    await newest().last.answer({ ok: true, seq: 1 })
    expect(await gone).toBe(false)
  })

  it('that the server refused stays with the reason, also after a reload, and is not sent again', async () => {
    await opened()
    session.send('first')
    await settled()
    await newest().last.answer(no('invalid_arguments', 'not like this'))
    reload()
    await opened()
    expect(session.unsent).toMatchObject([{ text: 'first', refused: { message: 'not like this' } }])
    expect(newest().sent).toEqual([])
    expect(await session.unsend(session.unsent[0]?.clientMessageId ?? '')).toBe(true)
    expect(session.unsent).toEqual([])
  })
})

describe('a lost sign-in', () => {
  it('keeps what is sent under the person whose sign-in it was', async () => {
    await opened()
    await newest().refuse('unauthorized')
    expect(usePerson().me).toBe(null)
    session.send('typed meanwhile')
    reload()
    await opened()
    expect(newest().sent.map(({ payload }) => payload.text)).toEqual(['typed meanwhile'])
  })

  it('is not mixed with the next person', async () => {
    await opened()
    await newest().refuse('unauthorized')
    session.send('of ana')
    usePerson().enter(me('bo'))
    session.open('ses_1')
    expect(session.unsent).toEqual([])
    reload('ana')
    session.open('ses_1')
    expect(session.unsent.map(({ text }) => text)).toEqual(['of ana'])
  })

  it('before the person is known, what was sent becomes theirs, beside what was kept', async () => {
    await opened()
    await newest().lose()
    session.send('earlier')
    reload(null)
    session.open('ses_1')
    session.send('now')
    usePerson().enter(me('ana'))
    await newest().ready()
    expect(session.unsent.map(({ text }) => text)).toEqual(['earlier', 'now'])
    for (const sent of [...newest().sent]) await sent.answer({ ok: true, seq: 0 })
    await settled()
    expect(newest().sent.map(({ payload }) => payload.text).sort()).toEqual(['earlier', 'now'])
  })
})

describe('a new session', () => {
  it('keeps a message that was sent while the server was away over a reload, and only in its tab', async () => {
    session.open(null)
    session.send('hello')
    const name = sessionStorage.getItem('sepal.tab')
    reload()
    sessionStorage.setItem('sepal.tab', 'another')
    session.open(null)
    expect(session.unsent).toEqual([])
    session.close()
    sessionStorage.setItem('sepal.tab', name ?? '')
    session.open(null)
    expect(session.unsent.map(({ text }) => text)).toEqual(['hello'])
    await newest().ready({ sessionId: 'ses_new' })
    await newest().last.answer({ ok: true, seq: 1 })
    expect(session.id).toBe('ses_new')
    reload()
    session.open(null)
    expect(session.unsent).toEqual([])
    session.open('ses_new')
    expect(session.unsent.map(({ text }) => text)).toEqual(['hello'])
  })

  it('asks for the session that the message may have reached', async () => {
    session.open(null)
    await newest().ready({ sessionId: 'ses_new' })
    session.send('hello')
    await settled()
    reload()
    session.open(null)
    expect(newest().auths).toEqual([{ sessionId: 'ses_new' }])
  })

  it('that nothing was told is begun anew after a restart of the server', async () => {
    session.open(null)
    await newest().ready({ sessionId: 'ses_gone' })
    await newest().lose()
    newest().connect()
    expect(newest().auths.at(-1)).toEqual({})
    await newest().ready({ sessionId: 'ses_new' })
    session.send('hello')
    await settled()
    await newest().last.answer({ ok: true, seq: 0 })
    expect(session.id).toBe('ses_new')
  })

  it('whose message never arrived is begun anew, and the message goes there', async () => {
    session.open(null)
    await newest().ready({ sessionId: 'ses_gone' })
    session.send('hello')
    await settled()
    await newest().lose()
    newest().connect()
    expect(newest().auths.at(-1)).toMatchObject({ sessionId: 'ses_gone' })
    await newest().refuse('session_not_found')
    expect(newest().auths.at(-1)).toEqual({})
    expect(session.linkState).not.toBe('refused')
    await newest().ready({ sessionId: 'ses_new', journalId: 'j2' })
    await later()
    expect(newest().sent.map(({ payload }) => payload.text)).toEqual(['hello', 'hello'])
    await newest().last.answer({ ok: true, seq: 0 })
    expect(session.id).toBe('ses_new')
  })

  it('does not hide that a session of the address is gone', async () => {
    session.open('ses_1')
    await newest().refuse('session_not_found')
    expect(session.linkState).toBe('refused')
  })
})

describe('an outage of the store', () => {
  async function away(): Promise<void> {
    await opened()
    session.send('hello')
    await settled()
    await newest().last.answer(no('store_unavailable', 'away'))
    expect(session.trouble?.code).toBe('store_unavailable')
  }

  it('is over when what was sent is saved', async () => {
    await away()
    await later()
    await newest().last.answer({ ok: true, seq: 0 })
    expect(session.trouble).toBe(null)
  })

  it('is over when an event was saved', async () => {
    await away()
    await newest().tell(event(1, 'session:changed', { title: 'T' }))
    expect(session.trouble).toBe(null)
  })

  it('is over for the page when nothing waits any more', async () => {
    await away()
    await session.unsend(session.unsent[0]?.clientMessageId ?? '')
    expect(session.trouble).toBe(null)
  })
})

describe('stopping', () => {
  it('while the connection is away is kept for that turn until it is acknowledged', async () => {
    await opened(withState({ running: turn }))
    await newest().lose()
    void session.stop()
    void session.stop()
    await settled()
    expect(session.stopping).toBe(3)
    await newest().ready(withState({ running: turn }))
    await newest().lose()
    await later()
    await newest().ready(withState({ running: turn }))
    expect(newest().sent.map(({ command, payload }) => [command, payload])).toEqual([
      ['agent:cancel', { turn: 3 }],
      ['agent:cancel', { turn: 3 }],
    ])
    await newest().last.answer({ ok: true })
    expect(session.stopping).toBe(null)
    expect(words()).toBe('')
  })

  it('does not wait behind a message that cannot be saved', async () => {
    await opened(withState({ running: turn }))
    session.send('and then')
    await settled()
    void session.stop()
    await settled()
    expect(newest().commands()).toEqual(['message', 'agent:cancel'])
  })
})

describe('what did not happen is told', () => {
  const acts: [string, () => Promise<unknown>, string][] = [
    ['withdrawing', () => session.withdraw('m1'), 'The message was not withdrawn: you are offline.'],
    ['asking again', () => session.retryTurn(), 'The model was not asked again: you are offline.'],
    ['stopping a call', () => session.stopCall('a'), 'The call was not stopped: you are offline.'],
    ['settling', () => session.settle({ callId: 'a', happened: true }), 'Your answer about the call was not saved: you are offline.'],
  ]
  it.each(acts)('%s', async (_, act, text) => {
    await opened()
    await newest().lose()
    await act()
    expect(words()).toBe(text)
  })

  it('in the words of the server, and only in its own session', async () => {
    await opened()
    const answer = session.retryTurn()
    await settled()
    await newest().last.answer(no('nothing_to_do', 'a turn is running'))
    await answer
    expect(words()).toBe('The model was not asked again: a turn is running')
    session.open('ses_2')
    expect(words()).toBe('')
  })

  it('of requests as well', async () => {
    await opened({ ...withState({ transcript: { events: [event(9, 'session:changed', { title: 'T' })], more: true } }), seq: 9 })
    vi.spyOn(rest, 'eventsBefore').mockRejectedValue(new TypeError('fetch failed'))
    vi.spyOn(rest, 'renameSession').mockRejectedValue(new TypeError('fetch failed'))
    await session.loadOlder()
    expect(words()).toBe('Earlier entries could not be loaded: you are offline.')
    await session.rename('New')
    expect(words()).toBe('The session was not renamed: you are offline.')
    expect(session.conversation.title).toBe(null)
  })
})

describe('earlier entries', () => {
  it('do not wipe what only this page has seen: cut text and reasoning', async () => {
    const older = [event(1, 'user:message', 'hi', {}), event(2, 'agent:thinking', { turn: 1, iteration: 2, took: [] })]
    await opened({ ...withState({ transcript: { events: [event(3, 'session:changed', { title: 'T' })], more: true }, running: { ...turn, turn: 1, iteration: 1 } }), seq: 3 })
    const delta = (kind: string, text: string) => newest().tell({ event: 'agent:delta', args: [text, { turn: 1, iteration: 1, attempt: 0, offset: 0, kind }] })
    await delta('reasoning', 'let me see')
    await delta('text', 'It is')
    await newest().tell(event(4, 'agent:error', 'gone', { turn: 1, code: 'provider_unavailable' }))
    await newest().tell(event(5, 'user:message', 'again', {}))
    const seen = () => session.conversation.entries.map((entry) => (entry.kind === 'said' ? `${entry.role} ${entry.text} (${entry.reasoning})` : entry.kind))
    expect(seen()).toEqual(['cut It is (let me see)', 'note', 'user'])
    vi.spyOn(rest, 'eventsBefore').mockResolvedValue({ items: older, nextCursor: null })
    await session.loadOlder()
    expect(seen()).toEqual(['user', 'cut It is (let me see)', 'note', 'user'])
    expect(new Set(session.conversation.entries.map(({ key }) => key)).size).toBe(4)
  })
})
