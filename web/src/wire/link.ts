/**
 * One session's socket. It keeps the promise of the page towards the server: nothing that was typed is lost
 * (kept commands are sent again with the same payload until they are acknowledged), and nothing that was missed
 * stays missing (every connection says what the page has already seen).
 */
import { io, type Socket } from 'socket.io-client'
import { basePath } from './base'
import type { Ack, CommandError, JsonObject, Seq, SystemReady } from './types'

export type LinkState = 'connecting' | 'open' | 'lost' | 'refused'

export interface Position {
  sessionId: string | null
  lastSeq: Seq | null
  journalId: string | null
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
/** Reasons after which the server is expected back without anybody's doing. */
const PASSING: ReadonlySet<string> = new Set(['store_unavailable', 'server_stopping', 'too_many_requests'])

export class SessionLink {
  private readonly socket: Socket
  private readonly whenOpen: (() => void)[] = []
  private state: LinkState = 'connecting'
  private reason: string | null = null
  private timer: ReturnType<typeof setTimeout> | null = null
  /** Kept commands go one after the other: their order is the order of typing. */
  private tail: Promise<unknown> = Promise.resolve()
  private isClosed = false

  constructor(private readonly handlers: LinkHandlers) {
    this.socket = io(new URL('/', document.baseURI).href, {
      path: `${basePath()}socket.io`,
      transports: ['websocket'],
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

  close(): void {
    this.isClosed = true
    if (this.timer) clearTimeout(this.timer)
    this.socket.disconnect()
  }

  /** Connects anew at once, also when a connection only seems to be there. */
  tryNow(): void {
    this.reason = null
    this.socket.disconnect().connect()
  }

  /** Sends once; fails when there is no connection or no answer. */
  async request(command: string, payload: JsonObject): Promise<Ack> {
    if (this.state !== 'open') return { ok: false, error: failure('offline') }
    return this.emit(command, payload)
  }

  /** Sends until the server has answered, over as many connections as it takes. */
  keep(command: string, payload: JsonObject): Promise<Ack> {
    const answer = this.tail.then(() => this.persist(command, payload))
    this.tail = answer
    return answer
  }

  private async persist(command: string, payload: JsonObject): Promise<Ack> {
    for (;;) {
      await this.opened()
      const ack = await this.emit(command, payload)
      if (ack.ok || !isPassing(ack.error)) return ack
      if (ack.error.code !== 'offline') this.handlers.onReason(ack.error.code, ack.error.message)
      await pause(RETRY_MS)
    }
  }

  private async emit(command: string, payload: JsonObject): Promise<Ack> {
    try {
      return (await this.socket.timeout(ACK_TIMEOUT_MS).emitWithAck(command, payload)) as Ack
    } catch {
      return { ok: false, error: failure('offline') }
    }
  }

  private opened(): Promise<void> {
    if (this.state === 'open') return Promise.resolve()
    return new Promise((resolve) => this.whenOpen.push(resolve))
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
      this.reason = null
      this.handlers.onReady(args[0] as SystemReady)
      this.become('open')
      for (const resume of this.whenOpen.splice(0)) resume()
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

function failure(code: string): CommandError {
  return { code, category: 'transient', message: '', retryable: true }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
