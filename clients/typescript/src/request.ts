/**
 * A request of the REST door, typed by its description: a wrong path, parameter or body does not compile.
 */
import type { components, paths } from './rest.generated.js'

export type Schemas = components['schemas']
export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
/** The paths that have this method. */
export type PathOf<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths]

interface Operation {
  parameters: { path?: unknown; query?: unknown }
  requestBody?: unknown
  responses: object
}
export type OperationOf<M extends Method, P extends PathOf<M>> = paths[P][M] extends Operation ? paths[P][M] : never

type Json<T> = T extends { content: { 'application/json': infer Body } } ? Body : never
type Success<O extends Operation> = Json<O['responses'][keyof O['responses'] & (200 | 201 | 202)]>
/** Nothing where the answer has no content. */
export type Answer<O extends Operation> = [Success<O>] extends [never] ? undefined : Success<O>

type PathParameters<O extends Operation> = O['parameters'] extends { path: infer Path } ? { path: Path } : { path?: undefined }
/** The parameters behind the `?` of an operation. */
export type QueryOf<M extends Method, P extends PathOf<M>> = NonNullable<OperationOf<M, P>['parameters']['query']>
type Query<O extends Operation> = { query?: O['parameters']['query'] }
type Body<O extends Operation> = O extends { requestBody: infer Content } ? { body: Json<Content> } : { body?: Json<NonNullable<O['requestBody']>> }

/** What any request may have. */
export interface Extra {
  /** Lets the request outlive a page. */
  keepalive?: boolean
  /** The `etag` of what was read: the change is made only if nothing has changed since. */
  ifMatch?: string
  /** A key of your own: the same request with the same key does nothing more. */
  idempotencyKey?: string
  signal?: AbortSignal
}

export type Options<O extends Operation> = PathParameters<O> & Query<O> & Body<O> & Extra
export type Arguments<O extends Operation> = object extends Options<O> ? [options?: Options<O>] : [options: Options<O>]

/** What is sent, whatever the operation. */
export interface Sent extends Extra {
  path?: object
  query?: object
  body?: unknown
}

/** What the server says of a refusal (RFC 9457). */
export type Problem = Partial<Schemas['Problem']> & Record<string, unknown>

/** A refused request. `code` is `offline` when no answer came at all. */
export class RequestError extends Error {
  readonly code: string
  readonly requestId: string | undefined
  readonly fields: { field: string; message: string }[]

  constructor(
    readonly status: number,
    readonly problem: Problem,
    /** The seconds after which the same may work. */
    readonly retryAfter: number | null = null,
  ) {
    super(problem.detail ?? problem.title ?? problem.code ?? `status ${status}`)
    this.code = problem.code ?? (status === 0 ? 'offline' : `http_${status}`)
    this.requestId = problem.requestId
    this.fields = problem.errors ?? []
  }
}

/** The path with its parameters, and the query without what is not given; without the slash at its beginning. */
export function filled(path: string, { path: parameters = {}, query = {} }: Sent): string {
  const values = new Map(Object.entries(parameters))
  const to = path.slice(1).replace(/{(\w+)}/g, (_, name: string) => encoded(name, String(values.get(name))))
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? to : `${to}?${search}`
}

/** A path in a workspace keeps its separators. */
function encoded(name: string, value: string): string {
  return name === 'path' ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value)
}

/** Asks once. `answer` reads what came, which is no refusal. */
export async function ask<T>(
  ask: () => Promise<Response>,
  answer: (response: Response) => Promise<T>,
): Promise<T> {
  let response: Response
  try {
    response = await ask()
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new RequestError(0, {})
  }
  if (response.ok) return answer(response)
  const wait = Number(response.headers.get('retry-after') ?? Number.NaN)
  throw new RequestError(response.status, await problemOf(response), Number.isFinite(wait) ? wait : null)
}

/** What an answer says; one without content, such as a 204, says nothing. */
export async function contentOf(response: Response): Promise<unknown> {
  const text = await response.text()
  return text === '' ? undefined : JSON.parse(text)
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem
  } catch {
    return {}
  }
}
