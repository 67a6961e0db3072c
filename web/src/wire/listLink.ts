/**
 * What happens in any session of the person, told to every page that is open, whatever it shows. Nothing is replayed:
 * whoever was away reads the list again.
 */
import { io, type Socket } from 'socket.io-client'
import { basePath } from './base'
import type { SessionItem } from './restTypes'

export interface ListHandlers {
  /** Connected, or something was missed: the list is to be read again. */
  onStale: () => void
  onChanged: (item: SessionItem) => void
  onRemoved: (id: string) => void
  /** What waits for the person in another's session is another. */
  onAsked: (id: string) => void
  /** The sign-in has ended. */
  onSignedOut: () => void
}

const RETRY_MS = 5_000

export class ListLink {
  private readonly socket: Socket
  private timer: ReturnType<typeof setTimeout> | null = null
  private isSignedOut = false

  constructor(private readonly handlers: ListHandlers) {
    this.socket = io(new URL('/person', document.baseURI).href, {
      path: `${basePath()}socket.io`,
      transports: ['websocket'],
      autoConnect: false,
      forceNew: true,
      reconnectionDelay: 500,
      reconnectionDelayMax: 5_000,
      timeout: 8_000,
    })
    this.socket.on('connect', () => this.handlers.onStale())
    this.socket.on('connect_error', (error) => this.ended(error.message.split(':', 1)[0]))
    this.socket.on('disconnect', () => this.ended())
    this.socket.on('error', (_text: string, why: { code?: string }) => this.heard(why.code))
    this.socket.on('sessions:changed', (item: SessionItem) => this.handlers.onChanged(item))
    this.socket.on('sessions:removed', ({ id }: { id: string }) => this.handlers.onRemoved(id))
    this.socket.on('approvals:changed', ({ id }: { id: string }) => this.handlers.onAsked(id))
    this.socket.on('sessions:missed', () => this.handlers.onStale())
  }

  open(): void {
    this.socket.connect()
  }

  close(): void {
    this.isSignedOut = true
    if (this.timer) clearTimeout(this.timer)
    this.socket.disconnect()
  }

  private heard(code: string | undefined): void {
    if (code !== 'unauthorized' || this.isSignedOut) return
    this.isSignedOut = true
    this.handlers.onSignedOut()
  }

  /** Where the network failed socket.io tries again by itself; where the server said no, this does. */
  private ended(code?: string): void {
    this.heard(code)
    if (this.socket.active || this.isSignedOut) return
    if (this.timer) clearTimeout(this.timer)
    this.timer = setTimeout(() => this.socket.connect(), RETRY_MS)
  }
}
