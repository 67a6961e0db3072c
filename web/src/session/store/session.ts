/** The open session: the pure fold with a socket around it. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef, watch } from 'vue'
import { EMPTY } from '@/session/conversation/conversation'
import { arrival, fold, mergeQueue, withWaiting } from '@/session/conversation/fold'
import { applyDelta, withRunning, type Delta } from '@/session/conversation/streaming'
import { retainStreamed } from '@/session/conversation/retainStreamed'
import { usePerson } from '@/stores/person'
import { useSessions } from '@/stores/sessions'
import { noteVersion } from '@/stores/version'
import { isObject } from '@/wire/json'
import { frameBytesOf, refused, SessionLink, type LinkState, type Position, type Wanted } from '@/wire/link'
import { rest, RequestError } from '@/wire/rest'
import type {
  Ack,
  CommandError,
  Decision,
  DecideAll,
  JsonObject,
  QueueCall,
  SandboxState,
  SessionUsage,
  Settlement,
  StoredEvent,
  SystemReady,
} from '@/wire/types'
import { MAX_TEXT_BYTES, type Action, type Failure } from './commandFailure'
import { useDecisions } from './decisions'
import { keepOutbox, randomHex, recallOutbox, type Unsent } from './outbox'

export interface Trouble {
  code: string
  text: string
}

const PAGE_OF_EVENTS = 300

export const useSession = defineStore('session', () => {
  const person = usePerson()
  const sessions = useSessions()

  /** Null until the first command of a new session is acknowledged: before that the server has not stored it. */
  const id = ref<string | null>(null)
  const isOpen = ref(false)
  const ready = shallowRef<SystemReady | null>(null)
  const conversation = shallowRef(EMPTY)
  const queue = shallowRef<QueueCall[]>([])
  const usage = shallowRef<SessionUsage | null>(null)
  const progress = shallowRef<Record<string, string>>({})
  const unsent = shallowRef<Unsent[]>([])
  const hasOlder = ref(false)
  const linkState = ref<LinkState>('connecting')
  const lostSince = ref<number | null>(null)
  const trouble = shallowRef<Trouble | null>(null)
  /** The last thing that the person asked for and that did not happen. */
  const failure = shallowRef<Failure | null>(null)
  /** The turn that the person stopped and whose stop is not acknowledged. */
  const stopping = ref<number | null>(null)
  /** The session that got its id while it was open. */
  const bornId = ref<string | null>(null)
  /** Who types here: whose sign-in was lost is still the one, so that what they type keeps its place. */
  const typist = ref(person.me?.user.id ?? '')
  const decisions = useDecisions()

  let link: SessionLink | null = null
  let newId: string | null = null
  const deliveries = new Map<string, Promise<boolean>>()
  let events: StoredEvent[] = []
  let deltas: Delta[] = []
  let frame = 0
  let isResuming = false
  let olderPage: Promise<void> | null = null

  const isRunning = computed(() => conversation.value.running !== null)
  const pending = computed(() => queue.value.filter((call) => call.status === 'pending'))
  const isEmpty = computed(() => conversation.value.entries.length === 0 && unsent.value.length === 0 && !isRunning.value)
  const model = computed(() => conversation.value.model ?? ready.value?.model ?? null)
  const provider = computed(() => conversation.value.provider ?? ready.value?.providerId ?? null)
  const isScripted = computed(() => provider.value === 'scripted')

  /** `null` starts a new session, with the model that is wanted. Opening what is open already changes nothing. */
  function open(sessionId: string | null, wanted: Wanted = {}): void {
    if (link && sessionId !== null && sessionId === id.value && linkState.value !== 'refused') return
    close()
    isOpen.value = true
    id.value = sessionId
    const outbox = recallOutbox(typist.value, sessionId)
    unsent.value = outbox.messages
    newId = sessionId === null ? outbox.sessionId : null
    link = new SessionLink({
      position,
      onReady,
      onEvent,
      onState: onLinkState,
      onReason: (code, text) => {
        trouble.value = { code, text }
        if (code === 'unauthorized') person.lost()
      },
    }, wanted)
    link.open()
    for (const message of unsent.value) if (!message.refused) void deliver(message)
  }

  /** A new session that nothing was told was never stored, and is gone when the server restarts. */
  function position(): Position {
    const isTold = unsent.value.some((message) => !message.refused) || conversation.value.seq > 0
    const sessionId = id.value ?? (isTold ? newId : null)
    if (sessionId === null || !ready.value) return { sessionId, lastSeq: null, journalId: null }
    return { sessionId, lastSeq: conversation.value.seq, journalId: ready.value.journalId }
  }

  /** What is not answered yet is answered with `left`, which is told in the session that comes next. */
  function close(): void {
    link?.close()
    link = null
    decisions.forget()
    deliveries.clear()
    failure.value = null
    stopping.value = null
    bornId.value = null
    isOpen.value = false
    cancelAnimationFrame(frame)
    frame = 0
    newId = null
    events = []
    deltas = []
    isResuming = false
    olderPage = null
    id.value = null
    ready.value = null
    conversation.value = EMPTY
    queue.value = []
    usage.value = null
    progress.value = {}
    unsent.value = []
    hasOlder.value = false
    linkState.value = 'connecting'
    lostSince.value = null
    trouble.value = null
  }

  function onLinkState(state: LinkState): void {
    if (state === 'refused' && trouble.value?.code === 'session_not_found' && id.value === null && newId !== null) {
      // It was never stored, so it is begun anew; what was typed goes there.
      newId = null
      ready.value = null
      conversation.value = EMPTY
      link?.tryNow()
      return
    }
    linkState.value = state
    if (state === 'open') {
      lostSince.value = null
      trouble.value = null
    } else if (state === 'lost') {
      lostSince.value ??= Date.now()
    }
  }

  function onReady(message: SystemReady): void {
    const { state } = message
    isResuming = false
    deltas = []
    newId = message.sessionId
    keepUnsent()
    noteVersion(message.version)
    if (!message.resumed) {
      events = [...state.transcript.events]
      hasOlder.value = state.transcript.more
      const folded = fold(EMPTY, events)
      conversation.value = { ...folded, seq: Math.max(folded.seq, message.seq), title: message.title, model: null, provider: null }
      conversation.value = withWaiting(withRunning(conversation.value, state.running), state.waiting)
      progress.value = {}
    } else if (state.running) {
      conversation.value = withRunning(conversation.value, state.running)
    }
    ready.value = message
    usage.value = state.usage
    takeQueue(state.queue.calls)
    settleUnsent()
  }

  function onEvent(event: string, args: unknown[]): void {
    const last = args[args.length - 1]
    const data: JsonObject = isObject(last) ? last : {}
    switch (event) {
      case 'agent:delta':
        return queueDelta({ ...(data as unknown as Delta), text: String(args[0] ?? '') })
      case 'tool:progress':
        return showProgress(data)
      case 'tool:queue':
        return takeQueue((data.calls ?? []) as QueueCall[])
      case 'session:usage':
        usage.value = data as unknown as SessionUsage
        return
      case 'system:sandbox':
        if (ready.value) ready.value = { ...ready.value, sandbox: data.sandbox as SandboxState }
        return
      case 'system:message':
        return systemMessage(data)
    }
    if (typeof data.seq === 'number') receive({ seq: data.seq, at: String(data.at ?? ''), event, args })
    else if (event === 'agent:error') trouble.value = { code: String(data.code ?? ''), text: String(args[0] ?? '') }
  }

  function receive(event: StoredEvent): void {
    flushDeltas()
    const kind = arrival(conversation.value.seq, event.seq)
    if (kind === 'known') return
    if (kind === 'gap') return resume()
    events.push(event)
    conversation.value = fold(conversation.value, [event])
    savedAgain()
    settleUnsent()
    tellRail(event)
  }

  /** The connection outlives an outage of the store, so its coming back is seen by what is saved. */
  function savedAgain(): void {
    if (trouble.value?.code === 'store_unavailable') trouble.value = null
  }

  /** Asks for what came after the last event that was folded. */
  function resume(): void {
    const journalId = ready.value?.journalId
    if (isResuming || !journalId || !link) return
    isResuming = true
    void link.request('session:resume', { lastSeq: conversation.value.seq, journalId }).then(() => {
      isResuming = false
    })
  }

  function takeQueue(calls: QueueCall[]): void {
    queue.value = calls
    conversation.value = mergeQueue(conversation.value, calls)
    if (id.value !== null) sessions.patch(id.value, { waiting: pending.value.length })
  }

  /** Text is appended once per frame, however many pieces came. */
  function queueDelta(delta: Delta): void {
    deltas.push(delta)
    if (frame === 0) frame = requestAnimationFrame(flushDeltas)
  }

  function flushDeltas(): void {
    cancelAnimationFrame(frame)
    frame = 0
    if (deltas.length === 0) return
    let running = conversation.value.running
    for (const delta of deltas) {
      const result = applyDelta(running, delta, Date.now())
      running = result.running
      if (result.isGap) resume()
    }
    deltas = []
    conversation.value = { ...conversation.value, running }
  }

  function showProgress(data: JsonObject): void {
    const callId = String(data.callId ?? '')
    const share = typeof data.progress === 'number' && typeof data.total === 'number' ? `${data.progress}/${data.total}` : ''
    const text = [data.message, share].filter(Boolean).join(' ')
    progress.value = { ...progress.value, [callId]: text }
  }

  function systemMessage(data: JsonObject): void {
    const running = conversation.value.running
    if (data.code !== 'model_retry' || !running) return
    const [attempt, maxAttempts] = [Number(data.attempt), Number(data.maxAttempts)]
    const retry = { attempt, maxAttempts, until: Date.now() + Number(data.delayMs) }
    conversation.value = { ...conversation.value, running: { ...running, retry } }
  }

  function tellRail(event: StoredEvent): void {
    if (id.value === null) return
    const state = pending.value.length > 0 ? 'waiting' : isRunning.value ? 'running' : lastFailed() ? 'failed' : 'idle'
    const title = conversation.value.title
    sessions.touch(id.value, { state, updatedAt: event.at, ...(title === null ? {} : { title }) })
  }

  function lastFailed(): boolean {
    const last = conversation.value.entries.at(-1)
    return last?.kind === 'note' && last.note.what === 'failed'
  }

  async function loadOlder(): Promise<void> {
    const first = events[0]
    if (!hasOlder.value || !first || id.value === null) return
    const sessionId = id.value
    olderPage ??= readOlder(sessionId, first.seq)
      .catch((error: unknown) => {
        if (sessionId === id.value) failed('older', error)
      })
      .finally(() => {
        olderPage = null
      })
    return olderPage
  }

  async function readOlder(sessionId: string, before: number): Promise<void> {
    const page = await rest.eventsBefore(sessionId, before, PAGE_OF_EVENTS)
    if (sessionId !== id.value) return
    events = [...page.items, ...events]
    hasOlder.value = page.items.length > 0 && (page.items[0]?.seq ?? 1) > 1
    // A call may have been asked on the older page and answered on the newer one, so all is folded again.
    const { running, waiting, title, model: chosen, provider: by, seq } = conversation.value
    const folded = fold(EMPTY, events)
    const whole = withWaiting({ ...folded, running, title, model: chosen, provider: by, seq }, waiting)
    conversation.value = mergeQueue(retainStreamed(conversation.value, whole), queue.value)
  }

  /** Gives the reason when the server could never take it; then nothing was sent. */
  function send(text: string): CommandError | null {
    const message: Unsent = { clientMessageId: `m_${randomHex()}`, text }
    const mostBytes = ready.value?.limits.frameBytes ?? Infinity
    const bytes = new TextEncoder().encode(text).length
    if (bytes > MAX_TEXT_BYTES || frameBytesOf('message', { ...message }) > mostBytes) return refused('too_large').error
    failure.value = null
    unsent.value = [...unsent.value, message]
    keepUnsent()
    void deliver(message)
    return null
  }

  function deliver(message: Unsent): Promise<boolean> {
    const delivery = untilTaken(message)
    deliveries.set(message.clientMessageId, delivery)
    return delivery
  }

  /** Whether it left this page; false when it was taken back before. */
  async function untilTaken({ clientMessageId, text }: Unsent): Promise<boolean> {
    const current = link
    if (!current) return false
    const ack = await current.keep('message', { clientMessageId, text })
    if (current !== link) return true
    deliveries.delete(clientMessageId)
    if (ack.ok) {
      savedAgain()
      becomeStored()
      // The event may have come first; then it is in the transcript already.
      if (typeof ack.seq === 'number' && ack.seq <= conversation.value.seq) forgetUnsent(clientMessageId)
      return true
    }
    if (ack.error.code === 'taken_back') forgetUnsent(clientMessageId)
    else refuse(clientMessageId, ack.error)
    return false
  }

  /** A message that the server refused for good stays, with the reason, until the person has seen to it. */
  function refuse(clientMessageId: string, error: CommandError): void {
    unsent.value = unsent.value.map((message) => (message.clientMessageId === clientMessageId ? { ...message, refused: error } : message))
    keepUnsent()
  }

  /** Takes a message back that was not confirmed; false when it arrived after all. */
  async function unsend(clientMessageId: string): Promise<boolean> {
    const delivery = deliveries.get(clientMessageId)
    link?.revise('message', (payload) => (payload.clientMessageId === clientMessageId ? null : payload))
    if (await delivery) return false
    forgetUnsent(clientMessageId)
    // Nothing waits any more, so nothing is "not saved yet".
    if (unsent.value.length === 0) savedAgain()
    return true
  }

  function becomeStored(): void {
    if (id.value !== null || newId === null) return
    keepOutbox(typist.value, null, { sessionId: null, messages: [] })
    bornId.value = newId
    id.value = newId
    keepUnsent()
    void sessions.refresh()
  }

  function settleUnsent(): void {
    if (unsent.value.length === 0) return
    const arrived = new Set<string | undefined>([
      ...conversation.value.entries.map((entry) => (entry.kind === 'user' ? entry.clientMessageId : undefined)),
      ...conversation.value.waiting.map((message) => message.clientMessageId),
    ])
    for (const { clientMessageId } of unsent.value) if (arrived.has(clientMessageId)) forgetUnsent(clientMessageId)
  }

  function forgetUnsent(clientMessageId: string): void {
    unsent.value = unsent.value.filter((message) => message.clientMessageId !== clientMessageId)
    keepUnsent()
  }

  function keepUnsent(): void {
    keepOutbox(typist.value, id.value, { sessionId: newId, messages: unsent.value })
  }

  watch(
    () => person.me?.user.id,
    (now) => {
      if (now === undefined || now === typist.value) return
      const before = typist.value
      typist.value = now
      if (before !== '') return close()
      // The server could not say who it is until now; what was typed meanwhile is theirs.
      keepOutbox(before, id.value, { sessionId: null, messages: [] })
      const known = new Set(unsent.value.map(({ clientMessageId }) => clientMessageId))
      const earlier = isOpen.value ? recallOutbox(now, id.value).messages.filter(({ clientMessageId }) => !known.has(clientMessageId)) : []
      unsent.value = [...earlier, ...unsent.value]
      if (isOpen.value) keepUnsent()
      for (const message of earlier) if (!message.refused) void deliver(message)
    },
    { flush: 'sync' },
  )

  // The list need not wait for the server's word on what is shown here.
  watch([id, linkState], () => sessions.follow(linkState.value === 'open' ? id.value : null), { flush: 'sync' })

  async function command(name: string, payload: JsonObject = {}): Promise<Ack> {
    const ack: Ack = link ? await link.request(name, payload) : refused('offline')
    if (!ack.ok && ack.error.code === 'unauthorized') person.lost()
    return ack
  }

  /** Says what did not happen. What was left undone in another session is told with that session's name. */
  async function told(action: Action, answer: Promise<Ack>): Promise<Ack> {
    const [owner, title] = [typist.value, conversation.value.title ?? undefined]
    const current = link
    failure.value = null
    const ack = await answer
    if (ack.ok) {
      if (current === link) savedAgain()
    } else if (ack.error.code === 'left') {
      if (owner === typist.value) failure.value = { action: 'left', error: ack.error, title }
    } else if (current === link && ack.error.code !== 'taken_back') {
      failure.value = { action, error: ack.error }
    }
    return ack
  }

  function failed(action: Action, error: unknown): void {
    const isAnswer = error instanceof RequestError
    const code = isAnswer ? error.code : 'offline'
    failure.value = { action, error: { ...refused(code).error, message: isAnswer ? error.message : '' } }
  }

  /** Deciding is idempotent, so a decision made while the connection is away still arrives. */
  async function decide(decision: Decision): Promise<Ack> {
    return told('decide', link ? decisions.decide(link, decision) : Promise.resolve(refused('offline')))
  }

  async function decideAll(decision: DecideAll): Promise<Ack> {
    return told('decide', link ? decisions.decideAll(link, decision) : Promise.resolve(refused('offline')))
  }

  /** A decision that was not sent yet is not sent any more. */
  function undecide(callId: string): void {
    if (link) decisions.takeBack(link, callId)
  }

  const settle = (settlement: Settlement) => told('settle', command('tool:outcome', { ...settlement }))
  const stopCall = (callId: string) => told('stopCall', command('tool:cancel', { callId }))
  const withdraw = (clientMessageId: string) => told('withdraw', command('message:withdraw', { clientMessageId }))
  const retryTurn = () => told('retry', command('turn:retry'))
  const chooseModel = ({ id: model, provider: by }: { id: string; provider: string }) =>
    command('session:model', { model, provider: by })
  const chooseWindow = (whole: boolean) => command('session:window', { whole })
  const resetHistory = () => command('history:reset')

  /** Names the turn, so that it can be kept until it is acknowledged and never stops a later one. */
  async function stop(): Promise<Ack> {
    const turn = conversation.value.running?.turn
    if (!link || turn === undefined || stopping.value === turn) return { ok: true }
    const current = link
    stopping.value = turn
    const ack = await told('stop', current.keep('agent:cancel', { turn }))
    if (current === link && stopping.value === turn) stopping.value = null
    return ack
  }

  async function rename(title: string): Promise<void> {
    const sessionId = id.value
    if (sessionId === null) return
    failure.value = null
    try {
      await sessions.rename(sessionId, title)
      if (sessionId === id.value) conversation.value = { ...conversation.value, title }
    } catch (error) {
      if (sessionId === id.value) failed('rename', error)
    }
  }

  function tryNow(): void {
    link?.tryNow()
  }

  return {
    id,
    isOpen,
    ready,
    conversation,
    queue,
    pending,
    usage,
    progress,
    unsent,
    hasOlder,
    linkState,
    lostSince,
    trouble,
    failure,
    stopping,
    bornId,
    typist,
    deciding: decisions.deciding,
    isRunning,
    isEmpty,
    isScripted,
    model,
    provider,
    open,
    close,
    loadOlder,
    send,
    unsend,
    command,
    decide,
    decideAll,
    undecide,
    settle,
    stopCall,
    withdraw,
    retryTurn,
    chooseModel,
    chooseWindow,
    resetHistory,
    stop,
    rename,
    tryNow,
  }
})
