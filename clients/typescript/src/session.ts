/** One session: what a person does in it, and what it shows. */
import type { Sepal, TypedEvent } from './client.js'
import type { SessionEvents } from './events.generated.js'
import { RequestError, type Schemas } from './request.js'
import type { StreamOptions } from './stream.js'

export type SessionEvent = TypedEvent<SessionEvents>
/** A card of a waiting call. */
export type Card = SessionEvents['tool:approval_required'][0]

export class Session {
  constructor(
    private readonly sepal: Sepal,
    readonly id: string,
  ) {}

  private get path(): { id: string } {
    return { id: this.id }
  }

  /** What the session shows from now on, or from `lastId`; interruptions are made up for. */
  events(options: StreamOptions = {}): AsyncGenerator<SessionEvent> {
    return this.sepal.follow(`api/sessions/${encodeURIComponent(this.id)}/stream`, options) as AsyncGenerator<SessionEvent>
  }

  read(): Promise<Schemas['SessionItem']> {
    return this.sepal.request('get', '/api/sessions/{id}', { path: this.path })
  }

  /** Sends a message. It is sent once, however often the request is repeated. */
  send(text: string, more: Partial<Schemas['SendMessageRequest']> = {}): Promise<Schemas['CommandAccepted']> {
    const body = { clientMessageId: crypto.randomUUID(), ...more, text }
    return this.sepal.request('post', '/api/sessions/{id}/messages', { path: this.path, body })
  }

  /** Takes a waiting message back. */
  withdraw(clientMessageId: string): Promise<Schemas['CommandAccepted']> {
    return this.sepal.request('post', '/api/sessions/{id}/messages/withdraw', { path: this.path, body: { clientMessageId } })
  }

  /** Lets a call run; with `args`, changed. What would run has to be what the card shows. */
  approve({ callId, digest }: Pick<Card, 'callId' | 'digest'>, more: Partial<Schemas['DecideOne']> = {}): Promise<Schemas['CommandAccepted']> {
    return this.decide({ callId, ...(digest ? { digest } : {}), ...more, approved: true })
  }

  reject({ callId }: Pick<Card, 'callId'>, reason?: string): Promise<Schemas['CommandAccepted']> {
    return this.decide({ callId, approved: false, ...(reason === undefined ? {} : { reason }) })
  }

  decide(body: Schemas['DecideCallRequest']): Promise<Schemas['CommandAccepted']> {
    return this.sepal.request('post', '/api/sessions/{id}/approvals', { path: this.path, body })
  }

  /** Tries a waiting call in a copy of the workspace. Its card says what came of it. */
  dryRun({ callId, digest }: Pick<Card, 'callId' | 'digest'>): Promise<Schemas['CommandAccepted']> {
    return this.sepal.request('post', '/api/sessions/{id}/dry-runs', { path: this.path, body: { callId, ...(digest ? { digest } : {}) } })
  }

  /** Stops the running turn and its calls. */
  stop(turn?: number): Promise<Schemas['CommandAccepted']> {
    return this.sepal.request('post', '/api/sessions/{id}/stop', { path: this.path, body: turn === undefined ? {} : { turn } })
  }

  /** Stops one running call. */
  stopCall(call: string): Promise<Schemas['CommandAccepted']> {
    return this.sepal.request('post', '/api/sessions/{id}/calls/{call}/stop', { path: { id: this.id, call } })
  }

  /** Asks again for the last answer. */
  retry(): Promise<Schemas['CommandAccepted']> {
    return this.sepal.request('post', '/api/sessions/{id}/retry', { path: this.path })
  }

  /** A new session that shares the past of this one. */
  async fork(body: Schemas['ForkSessionRequest'] = {}): Promise<Session> {
    const { id } = await this.sepal.request('post', '/api/sessions/{id}/fork', { path: this.path, body, idempotencyKey: crypto.randomUUID() })
    return new Session(this.sepal, id)
  }

  /** Answers a question of a server. */
  answer(body: Schemas['AnswerElicitationRequest']): Promise<Schemas['CommandAccepted']> {
    return this.sepal.request('post', '/api/sessions/{id}/elicitations', { path: this.path, body })
  }

  /** The folders and files below a path of the workspace. */
  files(path?: string): Promise<Schemas['FolderListing']> {
    return this.sepal.request('get', '/api/sessions/{id}/files', { path: this.path, query: path === undefined ? {} : { path } })
  }

  /** The text of a file. */
  async readFile(path: string): Promise<{ text: string; etag: string | null }> {
    const response = await this.sepal.raw('get', '/api/sessions/{id}/files/{path}', { path: { id: this.id, path } })
    return { text: await response.text(), etag: response.headers.get('etag') }
  }

  /** Writes a file; with `ifMatch`, over exactly that version. */
  async writeFile(path: string, content: string | Uint8Array<ArrayBuffer>, more: { ifMatch?: string; overwrite?: boolean } = {}): Promise<void> {
    const { ifMatch, overwrite } = more
    await this.sepal.raw('put', '/api/sessions/{id}/files/{path}', {
      path: { id: this.id, path },
      query: overwrite ? { overwrite: true } : {},
      ...(ifMatch === undefined ? {} : { ifMatch }),
      content,
    })
  }

  /** What changed in the workspace, the newest first. */
  changes(): Promise<Schemas['ChangeList']> {
    return this.sepal.request('get', '/api/sessions/{id}/changes', { path: this.path })
  }

  /** Undoes a change, exactly as its plan says. */
  async undo(number: number): Promise<Schemas['UndoneChange']> {
    const path = { id: this.id, number }
    const { digest } = await this.sepal.request('get', '/api/sessions/{id}/changes/{number}/undo', { path })
    return this.sepal.request('post', '/api/sessions/{id}/changes/{number}/undo', { path, body: { digest } })
  }

  delete(): Promise<undefined> {
    return this.sepal.request('delete', '/api/sessions/{id}', { path: this.path })
  }
}

/** True if the same may work later. */
export function isPassing(error: unknown): boolean {
  return error instanceof RequestError && (error.status === 0 || error.problem.category === 'transient')
}
