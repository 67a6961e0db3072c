/** The door of an installation for one person or key. */
import type { ListEvents } from './events.generated.js'
import { ask, contentOf, filled, RequestError, type Answer, type Arguments, type Method, type OperationOf, type PathOf, type Schemas, type Sent } from './request.js'
import { Session } from './session.js'
import { follow, type StreamEvent, type StreamOptions } from './stream.js'

export interface SepalOptions {
  /** Where Sepal lives. */
  url: string
  /** An API key. Without one, sign in; in a browser, the cookie of the page is used. */
  key?: string
  /** The token of a page that has a cookie already; `GET /api/auth/me` says it. */
  csrfToken?: () => string
  fetch?: typeof fetch
}

/** An event of a map of events, with its position. */
export type TypedEvent<Events> = { [Name in keyof Events]: { name: Name; args: Events[Name]; id: string | null } }[keyof Events]

export class Sepal {
  private readonly base: string
  private readonly key: string | undefined
  private readonly fetch: typeof fetch
  /** Of a sign-in outside of a browser. */
  private cookie: string | null = null
  private csrfToken: () => string

  constructor({ url, key, csrfToken, fetch: own }: SepalOptions) {
    this.base = url.endsWith('/') ? url : `${url}/`
    this.key = key
    this.csrfToken = csrfToken ?? (() => '')
    // A browser's own function refuses to be called as a method of anything else.
    this.fetch = own ?? ((...args) => fetch(...args))
  }

  /** Asks the REST door. */
  async request<M extends Method, P extends PathOf<M>>(method: M, path: P, ...[options]: Arguments<OperationOf<M, P>>): Promise<Answer<OperationOf<M, P>>> {
    return (await this.read(method, path, ...([options] as unknown as Arguments<OperationOf<M, P>>))).answer
  }

  /** The same, with the version of what was read for `ifMatch`. */
  async read<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[options]: Arguments<OperationOf<M, P>>
  ): Promise<{ answer: Answer<OperationOf<M, P>>; etag: string | null }> {
    const sent = (options ?? {}) as Sent
    const isJson = sent.body !== undefined
    return ask(
      () => this.send(method, filled(path, sent), sent, isJson ? JSON.stringify(sent.body) : undefined, isJson ? 'application/json' : undefined),
      async (response) => ({
        answer: (await contentOf(response)) as Answer<OperationOf<M, P>>,
        etag: response.headers.get('etag'),
      }),
    )
  }

  /** Asks for something that is no JSON, or sends it: a file, a picture, an archive. */
  raw(method: Method, path: string, sent: Sent & { content?: string | Uint8Array<ArrayBuffer> } = {}): Promise<Response> {
    const type = sent.content === undefined ? undefined : 'application/octet-stream'
    return ask(
      () => this.send(method, filled(path, sent), sent, sent.content, type),
      async (response) => response,
    )
  }

  /** All entries of a list, page after page. */
  async *pages<Item>(page: (cursor: string | undefined) => Promise<{ items: Item[]; nextCursor?: string | null }>): AsyncGenerator<Item> {
    let cursor: string | undefined
    do {
      const { items, nextCursor } = await page(cursor)
      yield* items
      cursor = nextCursor ?? undefined
    } while (cursor !== undefined)
  }

  /** Signs in with a password; later requests are of that person. Without a tenant it is `default`. */
  async signIn(name: string, password: string, tenant?: string): Promise<Schemas['Me']> {
    const me = await ask(
      () => this.send('post', 'api/auth/login', {}, JSON.stringify({ name, password, tenant }), 'application/json'),
      async (response) => {
        const cookies = response.headers.getSetCookie?.() ?? []
        this.cookie = cookies.map((cookie) => cookie.split(';', 1)[0]).join('; ') || null
        return (await response.json()) as Schemas['Me']
      },
    )
    const token = me.csrfToken ?? ''
    this.csrfToken = () => token
    return me
  }

  /** Makes a session. */
  async createSession(body: Schemas['CreateSessionRequest'] = {}, idempotencyKey: string = crypto.randomUUID()): Promise<Session> {
    const { id } = await this.request('post', '/api/sessions', { body, idempotencyKey })
    return new Session(this, id)
  }

  /** A session that exists. */
  session(id: string): Session {
    return new Session(this, id)
  }

  /** Changes of the person's session list. Nothing is replayed: read the list again after an interruption. */
  sessionChanges(options: StreamOptions = {}): AsyncGenerator<TypedEvent<ListEvents>> {
    return this.follow('api/stream', options) as AsyncGenerator<TypedEvent<ListEvents>>
  }

  /** The events of a stream. */
  follow(path: string, options: StreamOptions = {}): AsyncGenerator<StreamEvent> {
    return follow(async (headers, signal) => {
      try {
        return await this.fetch(`${this.base}${path}`, { headers: { ...this.headers('get'), ...headers }, signal, credentials: 'same-origin' })
      } catch {
        throw new RequestError(0, {})
      }
    }, options)
  }

  private send(method: Method, to: string, { ifMatch, idempotencyKey, keepalive, signal }: Sent, body: string | Uint8Array<ArrayBuffer> | undefined, type: string | undefined): Promise<Response> {
    const headers: Record<string, string> = { Accept: 'application/json, */*', ...this.headers(method) }
    if (type !== undefined) headers['Content-Type'] = type
    if (ifMatch !== undefined) headers['If-Match'] = ifMatch
    if (idempotencyKey !== undefined) headers['Idempotency-Key'] = idempotencyKey
    return this.fetch(`${this.base}${to}`, {
      method: method.toUpperCase(),
      headers,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { body }),
      ...(keepalive ? { keepalive } : {}),
      ...(signal ? { signal } : {}),
    })
  }

  private headers(method: Method): Record<string, string> {
    if (this.key !== undefined) return { Authorization: `Bearer ${this.key}` }
    return {
      ...(this.cookie === null ? {} : { Cookie: this.cookie }),
      ...(method === 'get' ? {} : { 'X-CSRF-Token': this.csrfToken() }),
    }
  }
}
