/** The REST half of the wire: one `request` that knows the cookie, the CSRF header and problem+json. */
import { address } from './base'
import type { StoredEvent } from './types'

export interface Installation {
  name: string
  version: string
}

export interface Me {
  user: { id: string; name: string; role: string }
  tenant: { id: string; name: string }
  csrfToken: string
  installation: Installation
  authMode: 'password' | 'none'
  encrypted: boolean
}

export type SessionState = 'idle' | 'running' | 'waiting' | 'failed'

export interface SessionItem {
  id: string
  title: string | null
  createdAt: string
  updatedAt: string
  state: SessionState
  waiting: number
}

export interface Page<T> {
  items: T[]
  nextCursor: string | null
}

export interface Model {
  id: string
  name: string
  provider: string
  contextWindow: number | null
}

export type LimitMeans = 'cgroup' | 'rlimit' | 'watchdog' | 'none'

export interface System {
  version: string
  installation: string
  model: { provider: string; model: string; scripted: boolean }
  sandbox: {
    kind: 'docker' | 'bubblewrap' | 'none'
    network: string
    ok: boolean
    limits: Record<'memory' | 'cpu' | 'processes' | 'time', LimitMeans>
    detail: string
  }
  storage: { kind: string; detail: string }
  checks: { name: string; ok: boolean; detail: string; remedy: string | null }[]
}

interface Problem {
  title?: string
  detail?: string
  code?: string
  errors?: { field: string; message: string }[]
  requestId?: string
  installation?: Installation
  setupNeeded?: boolean
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
}

let csrfToken = ''

/** Called with every answer that carries the token (`me`, setup, login, link). */
export function useCsrfToken(token: string): void {
  csrfToken = token
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

interface Options {
  body?: unknown
  /** Lets the request outlive the page; used when a tab closes. */
  keepalive?: boolean
}

async function request<T>(method: Method, path: string, { body, keepalive }: Options = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (method !== 'GET') headers['X-CSRF-Token'] = csrfToken
  let response: Response
  try {
    response = await fetch(address(path), {
      method,
      headers,
      credentials: 'same-origin',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(keepalive ? { keepalive } : {}),
    })
  } catch {
    throw new RequestError(0, {})
  }
  if (!response.ok) throw new RequestError(response.status, await problemOf(response))
  if (response.status === 204) return undefined as T
  return (await response.json()) as T
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem
  } catch {
    return {}
  }
}

function session(id: string): string {
  return `api/sessions/${encodeURIComponent(id)}`
}

export const rest = {
  me: () => request<Me>('GET', 'api/auth/me'),
  setUp: (body: { secret: string; name: string; password: string }) => request<Me>('POST', 'api/auth/setup', { body }),
  openLink: (secret: string) => request<Me>('POST', 'api/auth/link', { body: { secret } }),
  signIn: (body: { name: string; password: string }) => request<Me>('POST', 'api/auth/login', { body }),
  signOut: () => request<undefined>('POST', 'api/auth/logout'),

  sessions: (cursor: string | null) =>
    request<Page<SessionItem>>('GET', cursor ? `api/sessions?cursor=${encodeURIComponent(cursor)}` : 'api/sessions'),
  renameSession: (id: string, title: string) => request<SessionItem>('PATCH', session(id), { body: { title } }),
  deleteSession: (id: string, keepalive: boolean) => request<undefined>('DELETE', session(id), { keepalive }),
  eventsBefore: (id: string, before: number, limit: number) =>
    request<Page<StoredEvent>>('GET', `${session(id)}/events?before=${before}&limit=${limit}`),

  models: () => request<{ provider: string; models: Model[] }>('GET', 'api/models/available'),
  system: () => request<System>('GET', 'api/system'),
}
