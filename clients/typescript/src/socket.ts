/** The socket, typed by its description. It needs `socket.io-client`. */
import { io, type Socket } from 'socket.io-client'
import type { Acknowledgement, Commands, SessionEvents } from './events.generated.js'

export interface SocketOptions {
  url: string
  key?: string
  sessionId?: string
  /** Where to continue: the last `seq`, and its journal. */
  lastSeq?: number
  journalId?: string
}

const ACK_TIMEOUT_MS = 15_000

type Listener<Name extends keyof SessionEvents> = (...args: SessionEvents[Name]) => void

export class SessionSocket {
  private readonly socket: Socket

  constructor({ url, key, ...where }: SocketOptions) {
    this.socket = io(url, { auth: { ...(key === undefined ? {} : { token: key }), ...where }, transports: ['websocket'], forceNew: true })
  }

  on<Name extends keyof SessionEvents>(name: Name, listener: Listener<Name>): this {
    this.socket.on(name as string, listener as (...args: unknown[]) => void)
    return this
  }

  /** The next event of that name. */
  once<Name extends keyof SessionEvents>(name: Name): Promise<SessionEvents[Name]> {
    return new Promise((resolve) => this.socket.once(name as string, (...args: unknown[]) => resolve(args as SessionEvents[Name])))
  }

  /** Sends a command. What is acknowledged is durable. */
  async command<Name extends keyof Commands>(name: Name, ...args: Commands[Name]): Promise<Acknowledgement> {
    return (await this.socket.timeout(ACK_TIMEOUT_MS).emitWithAck(name as string, ...args)) as Acknowledgement
  }

  close(): void {
    this.socket.disconnect()
  }
}
