/** A server's end of the socket for the tests beside: what the page asks is answered by hand. */
import { vi } from 'vitest'
import type { Ack, CommandError } from './link'
import type { JsonObject, QueueCall, StoredEvent, SystemReady } from './types'

export interface Sent {
  command: string
  payload: JsonObject
  answer: (ack: Ack) => Promise<void>
}

interface Waiting {
  fail: () => void
}

/** Behaves as socket.io-client does where the page relies on it. */
export class FakeSocket {
  /** In the order of sending; answered ones stay. */
  readonly sent: Sent[] = []
  /** The handshakes, as the server read them. */
  readonly auths: JsonObject[] = []
  active = false
  private readonly unanswered = new Set<Waiting>()
  private readonly listeners = new Map<string, (argument?: unknown) => void>()
  private onEvent: (event: string, ...args: unknown[]) => void = () => undefined

  constructor(private readonly readAuth: (done: (auth: JsonObject) => void) => void) {}

  on(event: string, listener: (argument?: unknown) => void): this {
    this.listeners.set(event, listener)
    return this
  }

  onAny(listener: (event: string, ...args: unknown[]) => void): this {
    this.onEvent = listener
    return this
  }

  connect(): this {
    this.active = true
    this.readAuth((auth) => this.auths.push(auth))
    return this
  }

  disconnect(): this {
    this.active = false
    this.end()
    return this
  }

  timeout(ms: number): { emitWithAck: (command: string, payload: JsonObject) => Promise<Ack> } {
    return { emitWithAck: (command, payload) => this.take(command, payload, ms) }
  }

  // The server's side

  get last(): Sent {
    const last = this.sent.at(-1)
    if (!last) throw new Error('nothing was sent')
    return last
  }

  commands(): string[] {
    return this.sent.map(({ command }) => command)
  }

  async ready(change: Partial<SystemReady> = {}): Promise<void> {
    this.onEvent('system:ready', systemReady(change))
    await settled()
  }

  async tell({ event, args }: Pick<StoredEvent, 'event' | 'args'>): Promise<void> {
    this.onEvent(event, ...args)
    await settled()
  }

  async queue(calls: QueueCall[]): Promise<void> {
    await this.tell({ event: 'tool:queue', args: [{ calls, seq: 0 }] })
  }

  /** The network goes away; the page tries again by itself. */
  async lose(): Promise<void> {
    this.end()
    await settled()
  }

  /** The handshake is refused. */
  async refuse(code: string): Promise<void> {
    this.active = false
    this.listeners.get('connect_error')?.(new Error(`${code}: no`))
    await settled()
  }

  private end(): void {
    for (const waiting of [...this.unanswered]) waiting.fail()
    this.listeners.get('disconnect')?.()
  }

  private take(command: string, payload: JsonObject, ms: number): Promise<Ack> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => waiting.fail(), ms)
      const end = () => {
        clearTimeout(timer)
        this.unanswered.delete(waiting)
      }
      const waiting: Waiting = {
        fail: () => {
          end()
          reject(new Error('no answer'))
        },
      }
      this.unanswered.add(waiting)
      const answer = (ack: Ack) => {
        end()
        resolve(ack)
        return settled()
      }
      this.sent.push({ command, payload: structuredClone(payload), answer })
    })
  }
}

/** Every socket that the page has made, the newest last. */
export const sockets: FakeSocket[] = []

export function newest(): FakeSocket {
  const socket = sockets.at(-1)
  if (!socket) throw new Error('there is no socket')
  return socket
}

/** For `vi.mock('socket.io-client', …)`. */
export function fakeIo() {
  const io = (_: string, { auth }: { auth: (done: (auth: JsonObject) => void) => void }) => {
    const socket = new FakeSocket(auth)
    sockets.push(socket)
    return socket
  }
  return { io }
}

/** Until everything that follows by itself has happened. */
export async function settled(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0)
}

export function no(code: string, message = ''): Ack {
  const error: CommandError = { code, category: 'validation', message, retryable: false }
  return { ok: false, error }
}

export function systemReady(change: Partial<SystemReady> = {}): SystemReady {
  return {
    provider: 'claude',
    providerId: 'claude',
    model: 'm',
    configuredMaxTokens: 30_000,
    modelMaxTokens: 200_000,
    sessionId: 'ses_1',
    journalId: 'j1',
    seq: 0,
    sandbox: { kind: 'none', network: 'none', ok: true },
    storage: { kind: 'sqlite' },
    version: '1.0.0',
    user: { id: 'ana', name: 'Ana', role: 'member' },
    limits: { frameBytes: 1_048_576, commandsPerSocket: 64 },
    resumed: false,
    title: null,
    state: {
      transcript: { events: [], more: false },
      queue: { calls: [], seq: 0 },
      usage: { totalTokens: 0, totalCost: null, budget: null, context: { used: 0, window: 0 }, seq: 0 },
      running: null,
      waiting: [],
    },
    ...change,
  }
}
