/**
 * One session's socket. It keeps the promise of the page towards the server: nothing that was typed is lost
 * (kept commands are sent again with the same payload until they are acknowledged), and nothing that was missed
 * stays missing (every connection says what the page has already seen).
 */
import type { Commands } from 'sepal-client'
import { io, type Socket } from 'socket.io-client'
import { basePath } from './base'
import type { ErrorCategory, JsonObject, Seq, SystemReady } from './types'

export interface CommandError {
  code: string
  category: ErrorCategory
  message: string
  field?: string
  retryable: boolean
  requestId?: string
}

export type Ack = ({ ok: true; seq?: Seq } & JsonObject) | { ok: false; error: CommandError }

export type LinkState = 'connecting' | 'open' | 'lost' | 'refused'

export interface Position {
  sessionId: string | null
  lastSeq: Seq | null
  journalId: string | null
}

export interface Wanted {
  provider?: string
  model?: string
  assistant?: string
}

export interface LinkHandlers {
  /** Asked at every connection, so that the server can replay exactly what is missing. */
  position: () => Position
  onReady: (ready: SystemReady) => void
  onEvent: (event: string, args: unknown[]) => void
  onState: (state: LinkState) => void
  /** The server gave its reason; `text` is its own words. */
  onReason: (code: string, text: string) => void
}

/** An unanswered command is asked again, so this only decides how soon. */
const ACK_TIMEOUT_MS = 15_000
const RETRY_MS = 2_000
/** Room for what stands before the list in a packet. */
const ENVELOPE_BYTES = 32
/** Reasons after which the server is expected back without anybody's doing. */
const PASSING: ReadonlySet<string> = new Set(['store_unavailable', 'server_stopping', 'too_many_requests'])

/** A command that is sent until it is answered. */
interface Kept {
  /** Null once it was taken back: what is on its way is not sent again. */
  payload: JsonObject | null
  isInFlight: boolean
  answer: (ack: Ack) => void
}

/** Commands of one name go one after the other: their order is the order of typing. */
interface Lane {
  kept: Kept[]
  isDraining: boolean
}

export class SessionLink {
  private readonly socket: Socket
  private readonly whenOpen: (() => void)[] = []
  private readonly lanes = new Map<string, Lane>()
  private state: LinkState = 'connecting'
  private reason: string | null = null
  private timer: ReturnType<typeof setTimeout> | null = null
  private isClosed = false
  private frameBytes = Infinity

  /** `wanted` names what answers in a new session; by itself the installation's choice. */
  constructor(private readonly handlers: LinkHandlers, wanted: Wanted = {}) {
    this.socket = io(new URL('/', document.baseURI).href, {
      path: `${basePath()}socket.io`,
      transports: ['websocket'],
      query: { ...wanted },
      autoConnect: false,
      forceNew: true,
      reconnectionDelay: 500,
      reconnectionDelayMax: 5_000,
      timeout: 8_000,
      auth: (done) => done(this.auth()),
    })
    this.socket.on('connect_error', (error) => this.onConnectError(error))
    this.socket.on('disconnect', () => this.onDisconnect())
    this.socket.onAny((event: string, ...args: unknown[]) => this.receive(event, args))
  }

  open(): void {
    this.socket.connect()
  }

  /** For good: whatever was not answered yet is answered with `left`. */
  close(): void {
    this.isClosed = true
    if (this.timer) clearTimeout(this.timer)
    this.socket.disconnect()
    for (const lane of this.lanes.values()) {
      for (const kept of lane.kept.splice(0)) kept.answer(refused('left'))
    }
    this.resume()
  }

  /** Connects anew at once, also when a connection only seems to be there. */
  tryNow(): void {
    this.reason = null
    this.socket.disconnect().connect()
  }

  /** Sends once; fails when there is no connection or no answer. */
  async request(command: keyof Commands, payload: JsonObject): Promise<Ack> {
    if (this.state !== 'open') return refused('offline')
    return this.emit(command, payload)
  }

  /**
   * Sends until the server has answered, over as many connections as it takes. The page's own answers are
   * `left` (the link was closed), `taken_back` (see `revise`) and `too_large`.
   */
  keep(command: keyof Commands, payload: JsonObject): Promise<Ack> {
    if (this.isClosed) return Promise.resolve(refused('left'))
    const lane = this.lanes.get(command) ?? { kept: [], isDraining: false }
    this.lanes.set(command, lane)
    return new Promise((answer) => {
      lane.kept.push({ payload, isInFlight: false, answer })
      void this.drain(command, lane)
    })
  }

  /**
   * Rewrites what of a command still waits; `null` takes it back. What is on its way may have arrived: it is only
   * not sent again, so its answer says what became of it.
   */
  revise(command: keyof Commands, change: (payload: JsonObject) => JsonObject | null): void {
    const lane = this.lanes.get(command)
    if (!lane) return
    for (const kept of lane.kept) if (kept.payload) kept.payload = change(kept.payload)
    const isTakenBack = ({ payload, isInFlight }: Kept) => payload === null && !isInFlight
    const gone = lane.kept.filter(isTakenBack)
    lane.kept = lane.kept.filter((kept) => !isTakenBack(kept))
    for (const kept of gone) kept.answer(refused('taken_back'))
  }

  private async drain(command: keyof Commands, lane: Lane): Promise<void> {
    if (lane.isDraining) return
    lane.isDraining = true
    while (lane.kept.length > 0) {
      await this.opened()
      const [first] = lane.kept
      if (first && !(await this.attempt(command, lane, first))) await pause(RETRY_MS)
    }
    lane.isDraining = false
  }

  /** Whether it is done with; otherwise it is tried again. */
  private async attempt(command: keyof Commands, lane: Lane, kept: Kept): Promise<boolean> {
    if (kept.payload === null) return true
    kept.isInFlight = true
    const ack = await this.emit(command, kept.payload)
    kept.isInFlight = false
    if (this.isClosed) return true
    const isAgain = !ack.ok && isPassing(ack.error)
    if (isAgain && ack.error.code !== 'offline') this.handlers.onReason(ack.error.code, ack.error.message)
    if (isAgain && kept.payload) return false
    lane.kept.shift()
    kept.answer(isAgain ? refused('taken_back') : ack)
    return true
  }

  private async emit(command: keyof Commands, payload: JsonObject): Promise<Ack> {
    // The server ends the connection at a larger frame, so sending it would never come to an end.
    if (frameBytesOf(command, payload) > this.frameBytes) return refused('too_large')
    try {
      return (await this.socket.timeout(ACK_TIMEOUT_MS).emitWithAck(command, payload)) as Ack
    } catch {
      return refused('offline')
    }
  }

  private opened(): Promise<void> {
    if (this.state === 'open' || this.isClosed) return Promise.resolve()
    return new Promise((resolve) => this.whenOpen.push(resolve))
  }

  private resume(): void {
    for (const resume of this.whenOpen.splice(0)) resume()
  }

  private auth(): JsonObject {
    const { sessionId, lastSeq, journalId } = this.handlers.position()
    return {
      ...(sessionId === null ? {} : { sessionId }),
      ...(lastSeq === null || journalId === null ? {} : { lastSeq, journalId }),
    }
  }

  private receive(event: string, args: unknown[]): void {
    if (event === 'system:ready') {
      const ready = args[0] as SystemReady
      this.reason = null
      this.frameBytes = ready.limits.frameBytes
      this.handlers.onReady(ready)
      this.become('open')
      this.resume()
    } else if (event === 'error') {
      const detail = args[1] as { code?: string } | undefined
      this.reason = detail?.code ?? 'internal'
      this.handlers.onReason(this.reason, String(args[0] ?? ''))
    } else {
      this.handlers.onEvent(event, args)
    }
  }

  private onConnectError(error: Error): void {
    // `active`: the network failed, and socket.io tries again by itself. Otherwise the server said no.
    if (this.socket.active) {
      this.become('lost')
      return
    }
    const match = /^([a-z_]+)(?::\s*(.*))?$/s.exec(error.message)
    this.reason = match?.[1] ?? 'internal'
    this.handlers.onReason(this.reason, match?.[2] ?? error.message)
    this.refusedOrAgain()
  }

  private onDisconnect(): void {
    if (this.isClosed) return
    if (this.socket.active) this.become('lost')
    else this.refusedOrAgain()
  }

  private refusedOrAgain(): void {
    if (this.reason !== null && !PASSING.has(this.reason)) {
      this.become('refused')
      return
    }
    this.become('lost')
    if (this.timer) clearTimeout(this.timer)
    this.timer = setTimeout(() => this.socket.connect(), RETRY_MS)
  }

  private become(state: LinkState): void {
    if (this.state === state) return
    this.state = state
    this.handlers.onState(state)
  }
}

function isPassing(error: CommandError): boolean {
  return error.code === 'offline' || PASSING.has(error.code)
}

/** An answer that the page gives itself; its words are the page's. */
export function refused(code: string): { ok: false; error: CommandError } {
  const isPassing = code === 'offline'
  return { ok: false, error: { code, category: isPassing ? 'transient' : 'validation', message: '', retryable: isPassing } }
}

/** Bytes of a command as one packet: `42`, the number of its answer, and a list in JSON. */
export function frameBytesOf(command: string, payload: JsonObject): number {
  return ENVELOPE_BYTES + new TextEncoder().encode(JSON.stringify([command, payload])).length
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
