/** The open session: the pure fold with a socket around it. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { usePerson } from '@/shell/person'
import { recall, remember } from '@/shell/remember'
import { useSessions } from '@/shell/sessions'
import { noteVersion } from '@/shell/version'
import { SessionLink, type LinkState } from '@/wire/link'
import { rest } from '@/wire/rest'
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
import { applyDelta, arrival, EMPTY, fold, isObject, mergeQueue, withRunning, withWaiting, type Delta } from './fold'

/** A message that the server has not confirmed yet. */
export interface Unsent {
  clientMessageId: string
  text: string
}

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

  let link: SessionLink | null = null
  let newId: string | null = null
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

  /** `null` starts a new session. Opening what is open already changes nothing. */
  function open(sessionId: string | null): void {
    if (link && sessionId !== null && sessionId === id.value && linkState.value !== 'refused') return
    close()
    isOpen.value = true
    id.value = sessionId
    unsent.value = sessionId === null ? [] : recallUnsent(sessionId)
    link = new SessionLink({
      position: () => ({
        sessionId: id.value ?? newId,
        lastSeq: ready.value ? conversation.value.seq : null,
        journalId: ready.value?.journalId ?? null,
      }),
      onReady,
      onEvent,
      onState: onLinkState,
      onReason: (code, text) => {
        trouble.value = { code, text }
        if (code === 'unauthorized') person.lost()
      },
    })
    link.open()
    for (const message of unsent.value) void deliver(message)
  }

  function close(): void {
    link?.close()
    link = null
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
    settleUnsent()
    tellRail(event)
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
    olderPage ??= readOlder(id.value, first.seq).finally(() => {
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
    conversation.value = mergeQueue(whole, queue.value)
  }

  function send(text: string): void {
    const message: Unsent = { clientMessageId: newMessageId(), text }
    unsent.value = [...unsent.value, message]
    keepUnsent()
    void deliver(message)
  }

  async function deliver(message: Unsent): Promise<void> {
    const current = link
    if (!current) return
    const ack = await current.keep('message', { ...message })
    if (current !== link) return
    if (ack.ok) {
      becomeStored()
      // The event may have come first; then it is in the transcript already.
      if (typeof ack.seq === 'number' && ack.seq <= conversation.value.seq) forgetUnsent(message.clientMessageId)
      return
    }
    refusedText.value = { ...message, error: ack.error }
    forgetUnsent(message.clientMessageId)
  }

  /** A message that the server refused for good goes back into the composer, with the reason. */
  const refusedText = shallowRef<(Unsent & { error: CommandError }) | null>(null)

  function becomeStored(): void {
    if (id.value !== null || newId === null) return
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
    if (id.value === null) return
    remember(unsentKey(id.value), unsent.value.length === 0 ? null : JSON.stringify(unsent.value))
  }

  function recallUnsent(sessionId: string): Unsent[] {
    try {
      const stored: unknown = JSON.parse(recall(unsentKey(sessionId)) ?? '[]')
      return Array.isArray(stored) ? (stored as Unsent[]) : []
    } catch {
      return []
    }
  }

  function unsentKey(sessionId: string): string {
    return `unsent.${person.me?.user.id ?? ''}.${sessionId}`
  }

  async function command(name: string, payload: JsonObject = {}): Promise<Ack> {
    const ack: Ack = link ? await link.request(name, payload) : { ok: false, error: noLink() }
    if (!ack.ok && ack.error.code === 'unauthorized') person.lost()
    return ack
  }

  /** Deciding is idempotent, so a decision made while the connection is away still arrives. */
  async function decide(decision: Decision): Promise<Ack> {
    return link ? link.keep('tool:approval', { ...decision, scope: 'once' }) : { ok: false, error: noLink() }
  }

  async function decideAll(decision: DecideAll): Promise<Ack> {
    return link ? link.keep('tool:approval_all', { ...decision }) : { ok: false, error: noLink() }
  }

  const settle = (settlement: Settlement) => command('tool:outcome', { ...settlement })
  const stopCall = (callId: string) => command('tool:cancel', { callId })
  const withdraw = (clientMessageId: string) => command('message:withdraw', { clientMessageId })
  const retryTurn = () => command('turn:retry')
  const chooseModel = ({ id: model, provider: by }: { id: string; provider: string }) =>
    command('session:model', { model, provider: by })
  const chooseWindow = (whole: boolean) => command('session:window', { whole })
  const resetHistory = () => command('history:reset')

  function stop(): Promise<Ack> {
    const turn = conversation.value.running?.turn
    return command('agent:cancel', turn === undefined ? {} : { turn })
  }

  async function rename(title: string): Promise<void> {
    if (id.value === null) return
    await sessions.rename(id.value, title)
    conversation.value = { ...conversation.value, title }
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
    refusedText,
    hasOlder,
    linkState,
    lostSince,
    trouble,
    isRunning,
    isEmpty,
    isScripted,
    model,
    provider,
    open,
    close,
    loadOlder,
    send,
    command,
    decide,
    decideAll,
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

function noLink(): CommandError {
  return { code: 'offline', category: 'transient', message: '', retryable: true }
}

/** `crypto.randomUUID` is missing on plain http away from localhost. */
function newMessageId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return `m_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
