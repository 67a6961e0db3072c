/**
 * Requests of the REST door, by the client that programs use as well: it knows every path, what the path takes and
 * what it answers. Here stands what only a page knows: its cookie's CSRF token, and a sign-in that another tab changed.
 */
import { RequestError, Sepal, type Answer, type Arguments, type Method, type OperationOf, type PathOf } from 'sepal-client'
import { address } from './base'
import type { Problem } from './restTypes'

export { RequestError }

/** The refusal with what some paths add to it. */
export function problemOf(error: RequestError): Problem {
  return error.problem as Problem
}

/** What the server says of a refusal; nothing where no request was refused. */
export function reasonOf(error: unknown): string {
  return error instanceof RequestError ? error.message : ''
}

/** What the server says of a refusal; the other words where it said nothing. */
export function reasonOr(error: unknown, noAnswer: string): string {
  return error instanceof RequestError && error.status !== 0 ? error.message : noAnswer
}

/** Signing in anew in another tab makes another token. */
function isOfToken({ fields }: RequestError): boolean {
  return fields.some(({ field }) => field === 'X-CSRF-Token')
}

let csrfToken = ''

/** The address of a page changes only in tests. */
function door(): Sepal {
  return new Sepal({ url: address(''), csrfToken: csrf })
}

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
  return retried(path, () => door().request(method, path, ...([options] as unknown as Arguments<OperationOf<M, P>>)))
}

/** Asks once more where another sign-in of the same person only made another token. */
export async function retried<T>(path: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    // Signing in says by itself what its refusal means.
    if (error.status === 401 && !path.startsWith('/api/auth/')) signIn?.onSignedOut()
    if (!isOfToken(error) || (await signIn?.renew()) !== true) throw error
    return ask()
  }
}
