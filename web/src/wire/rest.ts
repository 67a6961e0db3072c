/** The REST half of the wire: one `request` that knows the cookie, the CSRF header and problem+json. */
import { address } from './base'
import type { StoredEvent, ToolAnnotations } from './types'

export interface Installation {
  name: string
  version: string
}

export interface Me {
  user: { id: string; name: string; role: string; installationAdmin?: boolean }
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
  /** Grows with every change. */
  version: number
}

export interface Page<T> {
  items: T[]
  nextCursor: string | null
}

/** US dollars per million tokens, for requests of more than `above` input tokens. */
export interface ModelPrice {
  above: number
  input: number
  cached: number | null
  output: number
}

export interface Model {
  id: string
  name: string
  provider: string
  contextWindow: number | null
  maxOutput: number | null
  /** Empty = unknown, which is not free. */
  prices: ModelPrice[]
  abilities: string[]
  /** Why it cannot be asked now. */
  problem?: string
}

export interface Models {
  /** What new sessions get. */
  provider: string
  model: string
  models: Model[]
  problems: { provider: string; problem: string }[]
}

export interface ModelChoice {
  provider: string
  model: string
}

/** What new sessions of this person begin with, and who said so. */
export interface ModelDefaults extends ModelChoice {
  source: 'own' | 'tenant' | 'installation' | 'settings'
  own: ModelChoice | null
  tenant: ModelChoice | null
  installation: ModelChoice | null
}

export type ProviderKind = 'openai' | 'anthropic' | 'gemini' | 'openai-compatible' | 'scripted'

export interface ProviderItem {
  id: string
  kind: ProviderKind
  baseUrl: string | null
  /** Keys never come back. */
  hasKey: boolean
  models: string[]
  /** Tokens that its models can read, where nobody else knows; null = an ordinary window is assumed. */
  contextWindow?: number | null
  /** The same by model. */
  contextWindows?: Record<string, number>
  source: 'settings' | 'installation' | 'tenant'
  isDefault: boolean
  problem?: string
}

export interface ProviderChange {
  kind: ProviderKind
  baseUrl?: string
  /** Absent keeps the stored key, `null` removes it. */
  apiKey?: string | null
  models?: string[]
  contextWindow?: number | null
  contextWindows?: Record<string, number>
  scope?: 'installation' | 'tenant'
}

export interface ProviderTest {
  ok: boolean
  latencyMs: number
  models: string[]
  model?: string
  error?: { code: string; message: string }
  /** Whether new sessions are answered by it now. */
  isDefault?: boolean
}

export type ServerState = 'healthy' | 'unhealthy' | 'reconnecting' | 'disconnected' | 'unknown'

/** The configuration of an MCP server, as files and `/api/mcp` spell it. */
export interface ServerConfig {
  transport?: 'stdio' | 'stdio-docker' | 'http' | 'sse'
  enabled?: boolean
  description?: string
  toolPrefix?: string
  includeTools?: string[]
  excludeTools?: string[]
  timeout?: number
  trusted?: boolean
  command?: string
  args?: string[]
  env?: Record<string, string>
  cwd?: string
  containerImage?: string
  containerEnv?: Record<string, string>
  workspace?: 'none' | 'ro' | 'rw'
  network?: 'none' | string[]
  url?: string
  headers?: Record<string, string>
}

/** A JSON merge patch of an entry: `null` removes a member, or a name in a map. */
export type ServerPatch = {
  [Field in keyof ServerConfig]?: ServerConfig[Field] extends Record<string, string> | undefined
    ? Record<string, string | null> | null
    : ServerConfig[Field] | null
}

export interface ServerItem {
  name: string
  source: 'settings' | 'installation' | 'tenant' | 'bundled'
  transport: string
  enabled: boolean
  description?: string
  /** Only for admins; secrets are masked. */
  config?: ServerConfig
  /** The names of the secrets that are set; only for admins. */
  secrets?: string[]
  status: ServerState
  toolCount: number | null
  enabledTools: number | null
  /** What its definitions cost in each request. */
  definitionTokens: number | null
  lastError?: string
  drift?: boolean
}

export interface ServerTool {
  name: string
  modelName: string
  title?: string
  description: string
  /** JSON Schema of its arguments. */
  schema: unknown
  annotations: ToolAnnotations
  /** Names this definition. */
  hash: string
  enabled: boolean
  /** It works only as a task: the model is not told of it, enabled or not. */
  needsTasks?: boolean
  effect: 'ask' | 'allow' | 'deny'
  drift?: { since: string }
}

/** What is decided about a tool, and the `hash` of the definition that was read. */
export interface ToolDecision {
  enabled?: boolean
  effect?: ServerTool['effect']
  hash?: string
}

export interface ServerTest {
  ok: boolean
  phases: { name: 'start' | 'handshake' | 'tools'; ms: number; ok: boolean; error?: string }[]
  tools: { name: string; description: string; needsTasks?: boolean }[]
  /** The last lines of its stderr. */
  stderr: string[]
  reason?: string
}

export interface ServerRestart extends ServerTest {
  /** How many running connections ended. */
  ended: number
}

/** What the gateway saw of a server in the last 24 hours. */
export interface ServerDay {
  stepSeconds: number
  /** Only those in which something was seen. */
  steps: { from: string; well: number; badly: number }[]
}

export type LimitMeans = 'cgroup' | 'rlimit' | 'quota' | 'watchdog' | 'none'

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
  /** The tool as it is now, where its definition is another than the one that was decided about. */
  tool?: ServerTool
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

let csrfToken = ''

/** Called with every answer that carries the token (`me`, setup, login, link). */
export function useCsrfToken(token: string): void {
  csrfToken = token
}

/** What whoever knows the person is told of a refused request. */
export interface Door {
  /** The server does not know the cookie any more. */
  onSignedOut: () => void
  /** The token is of another sign-in; tells whether it is known anew and still of the same person. */
  renew: () => Promise<boolean>
}

let door: Door | null = null

export function watchDoor(watcher: Door): void {
  door = watcher
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

interface Options {
  body?: unknown
  /** Lets the request outlive the page; used when a tab closes. */
  keepalive?: boolean
}

async function request<T>(method: Method, path: string, options: Options = {}): Promise<T> {
  try {
    return await requestOnce<T>(method, path, options)
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    // Signing in says by itself what its refusal means.
    if (error.status === 401 && !path.startsWith('api/auth/')) door?.onSignedOut()
    if (!error.isOfToken || (await door?.renew()) !== true) throw error
    return requestOnce<T>(method, path, options)
  }
}

async function requestOnce<T>(method: Method, path: string, { body, keepalive }: Options): Promise<T> {
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

function provider(id: string): string {
  return `api/providers/${encodeURIComponent(id)}`
}

function server(name: string): string {
  return `api/mcp/${encodeURIComponent(name)}`
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

  sessions: (cursor: string | null, state?: SessionState) => {
    const query = new URLSearchParams({ ...(cursor && { cursor }), ...(state && { state }) }).toString()
    return request<Page<SessionItem>>('GET', query ? `api/sessions?${query}` : 'api/sessions')
  },
  renameSession: (id: string, title: string) => request<SessionItem>('PATCH', session(id), { body: { title } }),
  deleteSession: (id: string, keepalive: boolean) => request<undefined>('DELETE', session(id), { keepalive }),
  eventsBefore: (id: string, before: number, limit: number) =>
    request<Page<StoredEvent>>('GET', `${session(id)}/events?before=${before}&limit=${limit}`),

  models: (isFresh = false) => request<Models>('GET', `api/models/available${isFresh ? '?refresh=true' : ''}`),
  modelDefaults: () => request<ModelDefaults>('GET', 'api/models/default'),
  setModelDefault: (body: ModelChoice & { scope: 'own' | 'tenant' | 'installation' }) =>
    request<ModelDefaults>('PUT', 'api/models/default', { body }),
  clearModelDefault: (scope: 'own' | 'tenant' | 'installation') =>
    request<ModelDefaults>('DELETE', `api/models/default?scope=${scope}`),
  providers: () => request<{ items: ProviderItem[] }>('GET', 'api/providers'),
  putProvider: (id: string, body: ProviderChange) => request<ProviderItem>('PUT', provider(id), { body }),
  deleteProvider: (id: string) => request<undefined>('DELETE', provider(id)),
  /** Without a change, tests what is stored. */
  testProvider: (id: string, change?: ProviderChange) =>
    request<ProviderTest>('POST', `${provider(id)}/test`, change ? { body: change } : {}),

  servers: () => request<{ items: ServerItem[] }>('GET', 'api/mcp'),
  server: (name: string) => request<ServerItem>('GET', server(name)),
  addServer: (name: string, config: ServerConfig, secrets: Record<string, string>) =>
    request<{ name: string }>('POST', 'api/mcp/add', { body: { name, config, secrets } }),
  changeServer: (name: string, change: ServerPatch) => request<ServerItem>('PATCH', server(name), { body: change }),
  deleteServer: (name: string) => request<{ ok: true; name: string }>('DELETE', server(name)),
  testServer: (name: string) => request<ServerTest>('POST', `${server(name)}/test`),
  restartServer: (name: string) => request<ServerRestart>('POST', `${server(name)}/restart`),
  testNewServer: (name: string, config: ServerConfig, secrets: Record<string, string>) =>
    request<ServerTest>('POST', 'api/mcp/test', { body: { name, config, secrets } }),
  setServerSecret: (name: string, secret: string, value: string) =>
    request<undefined>('PUT', `${server(name)}/secrets/${encodeURIComponent(secret)}`, { body: { value } }),
  deleteServerSecret: (name: string, secret: string) =>
    request<undefined>('DELETE', `${server(name)}/secrets/${encodeURIComponent(secret)}`),
  serverDay: (name: string) => request<ServerDay>('GET', `${server(name)}/health`),
  serverTools: (name: string) => request<{ items: ServerTool[] }>('GET', `${server(name)}/tools`),
  setServerTool: (name: string, tool: string, change: ToolDecision) =>
    request<ServerTool>('PUT', `${server(name)}/tools/${encodeURIComponent(tool)}`, { body: change }),
  serverLogs: (name: string) => request<{ lines: { at: string; text: string }[] }>('GET', `${server(name)}/logs`),
  system: () => request<System>('GET', 'api/system'),
}
