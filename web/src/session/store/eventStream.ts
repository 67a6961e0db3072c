/** Reads what the server tells of the open session, in order, and asks for what it missed. */
import { EMPTY } from '@/session/conversation/conversation'
import { arrival, fold, mergeQueue, withWaiting } from '@/session/conversation/fold'
import { applyDelta, retainStreamed, withRunning, type Delta } from '@/session/conversation/streaming'
import { useSessions } from '@/stores/sessions'
import { noteVersion } from '@/stores/version'
import { isObject } from '@/wire/json'
import { rest } from '@/wire/rest'
import { awaitsPerson, type JsonObject, type Queue, type ResourceSource, type SandboxState, type Seq, type SessionUsage, type StoredEvent, type SystemReady } from '@/wire/types'
import { noteFailure } from './commands'
import { noteSaved, resourceKey, type Connection, type SessionState } from './state'

/** Whoever keeps what was typed is told when it may have arrived. */
export interface Delivery {
  keep(): void
  confirmArrived(): void
}

export function useEventStream(state: SessionState, connection: Connection, delivery: Delivery) {
  const { conversation, queue, ready } = state
  const sessions = useSessions()
  const deltas = createFrameBuffer<Delta>(appendText)
  /** All events that the conversation is made of, the oldest first. */
  let events: StoredEvent[] = []
  let isResuming = false

  function onReady(message: SystemReady): void {
    const { queue: asked, running, transcript, usage, waiting } = message.state
    isResuming = false
    deltas.clear()
    connection.newId = message.sessionId
    delivery.keep()
    noteVersion(message.version)
    if (!message.resumed) {
      events = [...transcript.events]
      state.hasOlder.value = transcript.more
      const folded = fold(EMPTY, events)
      const begun = { ...folded, seq: Math.max(folded.seq, message.seq), title: message.title, model: null, provider: null, effort: undefined, compaction: undefined }
      conversation.value = withWaiting(withRunning(begun, running), waiting)
      state.progress.value = {}
    } else if (running) {
      conversation.value = withRunning(conversation.value, running)
    }
    ready.value = message
    state.usage.value = usage
    takeQueue(asked)
    delivery.confirmArrived()
  }

  function onEvent(event: string, args: unknown[]): void {
    const last = args[args.length - 1]
    const data: JsonObject = isObject(last) ? last : {}
    switch (event) {
      case 'agent:delta':
        return deltas.add({ ...(data as unknown as Delta), text: String(args[0] ?? '') })
      case 'tool:progress':
        return showProgress(data)
      case 'session:copying':
        state.copiedBytes.value = Number(data.copiedBytes)
        return
      case 'session:resource_changed':
        state.changedResources.value = new Set([...state.changedResources.value, resourceKey(data as unknown as ResourceSource)])
        return
      case 'tool:queue':
        return takeQueue(data as unknown as Queue)
      case 'session:usage':
        state.usage.value = data as unknown as SessionUsage
        return
      case 'mcpConnection':
        dispatchEvent(new Event(event))
        return
      case 'system:sandbox':
        if (ready.value) ready.value = { ...ready.value, sandbox: data.sandbox as SandboxState }
        return
      case 'system:message':
        return data.code === 'model_retry' ? showRetry(data) : noteBudget(data, args[0])
    }
    if (typeof data.seq === 'number') receive({ seq: data.seq, at: String(data.at ?? ''), event, args })
    else if (event === 'agent:error') state.trouble.value = { code: String(data.code ?? ''), text: String(args[0] ?? '') }
  }

  function receive(event: StoredEvent): void {
    deltas.flush()
    const kind = arrival(conversation.value.seq, event.seq)
    if (kind === 'known') return
    if (kind === 'gap') return resume()
    events.push(event)
    conversation.value = fold(conversation.value, [event])
    noteSaved(state)
    delivery.confirmArrived()
    tellRail(event)
  }

  /** Asks for what came after the last event that was folded. */
  function resume(): void {
    const journalId = ready.value?.journalId
    if (isResuming || !journalId || !connection.link) return
    isResuming = true
    void connection.link.request('session:resume', { lastSeq: conversation.value.seq, journalId }).then(() => {
      isResuming = false
    })
  }

  function takeQueue({ calls, elicitations = [] }: Pick<Queue, 'calls' | 'elicitations'>): void {
    queue.value = calls
    state.asked.value = elicitations
    conversation.value = mergeQueue(conversation.value, calls)
    if (state.id.value !== null) sessions.patch(state.id.value, { waiting: waitingCalls() })
  }

  function waitingCalls(): number {
    return queue.value.filter((call) => call.status === 'pending').length + state.asked.value.filter(awaitsPerson).length
  }

  function appendText(pieces: Delta[]): void {
    let { running } = conversation.value
    for (const piece of pieces) {
      const result = applyDelta(running, piece, Date.now())
      running = result.running
      if (result.isGap) resume()
    }
    conversation.value = { ...conversation.value, running }
  }

  function showProgress(data: JsonObject): void {
    const callId = String(data.callId ?? '')
    const value = typeof data.progress === 'number' ? data.progress : 0
    const total = typeof data.total === 'number' && data.total > 0 ? data.total : null
    const text = typeof data.message === 'string' ? data.message : ''
    state.progress.value = { ...state.progress.value, [callId]: { text, value, total } }
  }

  function showRetry(data: JsonObject): void {
    const { running } = conversation.value
    if (!running) return
    const [attempt, maxAttempts] = [Number(data.attempt), Number(data.maxAttempts)]
    const retry = { attempt, maxAttempts, until: Date.now() + Number(data.delayMs), cause: String(data.cause ?? '') }
    conversation.value = { ...conversation.value, running: { ...running, retry } }
  }

  function noteBudget({ code }: JsonObject, text: unknown): void {
    if (code === 'budget_warning' || code === 'answer_limited') state.budgetWord.value = { code, text: String(text) }
  }

  function tellRail(event: StoredEvent): void {
    if (state.id.value === null) return
    const { running, title } = conversation.value
    const now = waitingCalls() > 0 ? 'waiting' : running !== null ? 'running' : lastFailed() ? 'failed' : 'idle'
    sessions.touch(state.id.value, { state: now, updatedAt: event.at, ...(title === null ? {} : { title }) })
  }

  function lastFailed(): boolean {
    const last = conversation.value.entries.at(-1)
    return last?.kind === 'note' && last.note.what === 'failed'
  }

  /** A call may have been asked on the older page and answered on the newer one, so all is folded again. */
  function prepend(older: readonly StoredEvent[]): void {
    events = [...older, ...events]
    const { running, waiting, title, model, provider, effort, compaction, seq } = conversation.value
    const whole = withWaiting({ ...fold(EMPTY, events), running, title, model, provider, effort, compaction, seq }, waiting)
    conversation.value = mergeQueue(retainStreamed(conversation.value, whole), queue.value)
  }

  /** The key of the entry that shows that event, or the one that was shown last before it. */
  function entryAt(seq: Seq): string | null {
    const { entries } = conversation.value
    const event = events.find((event) => event.seq === seq)
    const last = event?.args[event.args.length - 1]
    const callId = isObject(last) ? last.callId : undefined
    const call = entries.find((entry) => entry.kind === 'call' && entry.call.callId === callId)
    return (call ?? entries.findLast((entry) => entry.seq <= seq))?.key ?? null
  }

  function clear(): void {
    deltas.clear()
    events = []
    isResuming = false
  }

  return { onReady, onEvent, prepend, oldest: () => events[0], entryAt, clear }
}

// Reads the events before those of the opening, a page at a time.

const PAGE_OF_EVENTS = 300
/** Of a page that is read on the way to an older one. */
const MOST_EVENTS = 500

interface Events {
  oldest(): StoredEvent | undefined
  prepend(older: readonly StoredEvent[]): void
}

export function useOlderEvents(state: SessionState, events: Events) {
  let page: Promise<void> | null = null

  async function load(): Promise<void> {
    const first = events.oldest()
    if (!state.hasOlder.value || !first || state.id.value === null) return
    const sessionId = state.id.value
    page ??= read(sessionId, first.seq)
      .catch((error: unknown) => {
        if (sessionId === state.id.value) noteFailure(state, 'older', error)
      })
      .finally(() => {
        page = null
      })
    return page
  }

  async function read(sessionId: string, before: number): Promise<void> {
    const found = await rest.eventsBefore(sessionId, before, PAGE_OF_EVENTS)
    if (sessionId !== state.id.value) return
    state.hasOlder.value = found.items.length > 0 && (found.items[0]?.seq ?? 1) > 1
    events.prepend(found.items)
  }

  /** Reads as far back as that event, and folds once. */
  async function loadBackTo(seq: Seq): Promise<void> {
    await page
    const first = events.oldest()
    const sessionId = state.id.value
    if (!state.hasOlder.value || !first || first.seq <= seq || sessionId === null) return
    page ??= readBack(sessionId, first.seq, seq)
      .catch((error: unknown) => {
        if (sessionId === state.id.value) noteFailure(state, 'older', error)
      })
      .finally(() => {
        page = null
      })
    return page
  }

  async function readBack(sessionId: string, before: Seq, seq: Seq): Promise<void> {
    const pages: StoredEvent[][] = []
    let oldest = before
    while (oldest > seq) {
      const { items } = await rest.eventsBefore(sessionId, oldest, MOST_EVENTS)
      if (sessionId !== state.id.value) return
      const first = items[0]
      if (!first) break
      pages.unshift(items)
      oldest = first.seq
    }
    state.hasOlder.value = oldest > 1 && pages.length > 0
    events.prepend(pages.flat())
  }

  function clear(): void {
    page = null
  }

  return { load, loadBackTo, clear }
}

// Gathers small pieces and hands them over once per frame, because a page is drawn no more often.

interface FrameBuffer<T> {
  add(item: T): void
  /** Hands over at once what has come. */
  flush(): void
  clear(): void
}

function createFrameBuffer<T>(take: (items: T[]) => void): FrameBuffer<T> {
  let items: T[] = []
  let frame = 0

  function add(item: T): void {
    items.push(item)
    if (frame === 0) frame = requestAnimationFrame(flush)
  }

  function flush(): void {
    cancelAnimationFrame(frame)
    frame = 0
    if (items.length === 0) return
    const taken = items
    items = []
    take(taken)
  }

  function clear(): void {
    cancelAnimationFrame(frame)
    frame = 0
    items = []
  }

  return { add, flush, clear }
}
