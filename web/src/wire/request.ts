/**
 * A request of the REST door: it knows the cookie, the CSRF token and problem+json. Which paths there are, what they
 * take and what they answer is read from the description of the door (`rest.generated.ts`), so a wrong one does not
 * compile.
 */
import { address } from './base'
import type { paths } from './rest.generated'
import type { Problem } from './restTypes'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
/** The paths that have this method. */
type PathOf<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths]

interface Operation {
  parameters: { path?: unknown; query?: unknown }
  requestBody?: unknown
  responses: object
}
type OperationOf<M extends Method, P extends PathOf<M>> = paths[P][M] extends Operation ? paths[P][M] : never

type Json<T> = T extends { content: { 'application/json': infer Body } } ? Body : never
type Success<O extends Operation> = Json<O['responses'][keyof O['responses'] & (200 | 201 | 202)]>
/** Nothing where only 204 is answered. */
type Answer<O extends Operation> = [Success<O>] extends [never] ? undefined : Success<O>

type PathParameters<O extends Operation> = O['parameters'] extends { path: infer Path } ? { path: Path } : { path?: undefined }
type Query<O extends Operation> = { query?: O['parameters']['query'] }
type Body<O extends Operation> = O extends { requestBody: infer Content } ? { body: Json<Content> } : { body?: Json<NonNullable<O['requestBody']>> }
type Options<O extends Operation> = PathParameters<O> & Query<O> & Body<O> & {
  /** Lets the request outlive the page; used when a tab closes. */
  keepalive?: boolean
}
type Arguments<O extends Operation> = object extends Options<O> ? [options?: Options<O>] : [options: Options<O>]

/** What is sent, whatever the operation. */
interface Sent {
  path?: object
  query?: object
  body?: unknown
  keepalive?: boolean
}

/** A refused request. `code` is `offline` when no answer came at all. */
export class RequestError extends Error {
  readonly code: string
  readonly requestId: string | undefined
  readonly fields: { field: string; message: string }[]

  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.detail ?? problem.title ?? problem.code ?? `status ${status}`)
    this.code = problem.code ?? (status === 0 ? 'offline' : `http_${status}`)
    this.requestId = problem.requestId
    this.fields = problem.errors ?? []
  }

  /** Signing in anew in another tab makes another token. */
  get isOfToken(): boolean {
    return this.fields.some(({ field }) => field === 'X-CSRF-Token')
  }
}

/** What the server says of a refusal; nothing where no request was refused. */
export function reasonOf(error: unknown): string {
  return error instanceof RequestError ? error.message : ''
}

/** What the server says of a refusal; the other words where it said nothing. */
export function reasonOr(error: unknown, noAnswer: string): string {
  return error instanceof RequestError && error.status !== 0 ? error.message : noAnswer
}

let csrfToken = ''

/** Called with every answer that carries the token (`me`, setup, login, link). */
export function setCsrfToken(token: string): void {
  csrfToken = token
}

/** For requests that are not made here. */
export function csrf(): string {
  return csrfToken
}

/** Whoever knows the person is told of a refused request. */
export interface SignInWatcher {
  /** The server does not know the cookie any more. */
  onSignedOut: () => void
  /** The token is of another sign-in; tells whether it is known anew and still of the same person. */
  renew: () => Promise<boolean>
}

let signIn: SignInWatcher | null = null

export function watchSignIn(watcher: SignInWatcher): void {
  signIn = watcher
}

export async function request<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  ...[options]: Arguments<OperationOf<M, P>>
): Promise<Answer<OperationOf<M, P>>> {
  return retried(path, () => requestOnce(method, path, (options ?? {}) as Sent) as Promise<Answer<OperationOf<M, P>>>)
}

/** Asks once more where another sign-in of the same person only made another token. */
export async function retried<T>(path: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    // Signing in says by itself what its refusal means.
    if (error.status === 401 && !path.startsWith('/api/auth/')) signIn?.onSignedOut()
    if (!error.isOfToken || (await signIn?.renew()) !== true) throw error
    return ask()
  }
}

async function requestOnce(method: Method, path: string, sent: Sent): Promise<unknown> {
  const { body, keepalive } = sent
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (method !== 'get') headers['X-CSRF-Token'] = csrfToken
  let response: Response
  try {
    response = await fetch(addressOf(path, sent), {
      method: method.toUpperCase(),
      headers,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(keepalive ? { keepalive } : {}),
    })
  } catch {
    throw new RequestError(0, {})
  }
  if (!response.ok) throw new RequestError(response.status, await problemOf(response))
  return response.status === 204 ? undefined : response.json()
}

/** The path with its parameters, and the query without what is not given. */
function addressOf(path: string, { path: parameters = {}, query = {} }: Sent): string {
  const filled = new Map(Object.entries(parameters))
  const to = path.slice(1).replace(/{(\w+)}/g, (_, name: string) => encodeURIComponent(String(filled.get(name))))
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return address(search === '' ? to : `${to}?${search}`)
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem
  } catch {
    return {}
  }
}
