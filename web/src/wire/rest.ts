/** The requests that the page makes of the REST door. */
import { request } from './request'
import type { AuditQuery, BudgetChange, BudgetWhose, BulkAction, Compaction, MayAdd, PastedServers, ProviderChange, ServerAudience, ServerConfig, ServerItem, ServerPatch, ServerTool, SessionState, ShareAudience, ToolDecision, UsageQuery, WaitingPage } from './restTypes'
import type { DecideAll, Decision } from './types'

type Scope = 'own' | 'tenant' | 'installation'

export const rest = {
  me: () => request('get', '/api/auth/me'),
  setUp: (body: { secret: string; name: string; password: string }) => request('post', '/api/auth/setup', { body }),
  openLink: (secret: string) => request('post', '/api/auth/link', { body: { secret } }),
  signIn: (body: { name: string; password: string; tenant?: string }) => request('post', '/api/auth/login', { body }),
  signOut: () => request('post', '/api/auth/logout'),

  sessions: (cursor: string | null, { isArchived, tag }: { isArchived: boolean; tag: string | null }, state?: SessionState) =>
    request('get', '/api/sessions', { query: { ...(cursor && { cursor }), ...(isArchived && { archived: true }), ...(tag !== null && { tag }), state } }),
  renameSession: (id: string, title: string) => request('patch', '/api/sessions/{id}', { path: { id }, body: { title } }),
  shares: (id: string) => request('get', '/api/sessions/{id}/shares', { path: { id } }),
  share: (id: string, audience: ShareAudience, days: number | null) =>
    request('post', '/api/sessions/{id}/shares', { path: { id }, body: { audience, ...(days !== null && { expiresInDays: days }) } }),
  stopSharing: (id: string, share: string) => request('delete', '/api/sessions/{id}/shares/{share}', { path: { id, share } }),
  sharing: () => request('get', '/api/sharing'),
  setSharing: (linksAllowed: boolean) => request('put', '/api/sharing', { body: { linksAllowed } }),
  forks: (id: string) => request('get', '/api/sessions/{id}/forks', { path: { id } }),
  changeSession: (id: string, body: { isPinned?: boolean; isArchived?: boolean; tags?: string[] }) =>
    request('patch', '/api/sessions/{id}', { path: { id }, body }),
  /** Outlives the page: what a person decided last is not lost with their tab. */
  changeSessions: (ids: string[], action: BulkAction, tag?: string) =>
    request('post', '/api/sessions/bulk', { body: { ids, action, ...(tag !== undefined && { tag }) }, keepalive: true }),
  search: (q: string, cursor: string | null) => request('get', '/api/search', { query: { q, ...(cursor && { cursor }) } }),
  searchIn: (id: string, q: string) => request('get', '/api/sessions/{id}/search', { path: { id }, query: { q } }),
  /** What waits for the person in all sessions, the longest first; with `session` in that one alone. */
  approvals: (cursor: string | null, session?: string) =>
    request('get', '/api/approvals', { query: { ...(cursor && { cursor }), ...(session !== undefined && { session }) } }) as Promise<WaitingPage>,
  approvalCount: () => request('get', '/api/approvals/count'),
  decide: (id: string, decision: Decision) => request('post', '/api/sessions/{id}/approvals', { path: { id }, body: { ...decision } }),
  decideAll: (id: string, decision: DecideAll) => request('post', '/api/sessions/{id}/approvals', { path: { id }, body: { ...decision } }),
  eventsAfter: (id: string, after: number, limit: number) =>
    request('get', '/api/sessions/{id}/events', { path: { id }, query: { after, limit } }),
  eventsBefore: (id: string, before: number, limit: number) =>
    request('get', '/api/sessions/{id}/events', { path: { id }, query: { before, limit } }),

  models: (isFresh = false) => request('get', '/api/models/available', { query: isFresh ? { refresh: true } : {} }),
  modelDefaults: () => request('get', '/api/models/default'),
  setModelDefault: (body: { provider: string; model: string; scope: Scope }) => request('put', '/api/models/default', { body }),
  clearModelDefault: (scope: Scope) => request('delete', '/api/models/default', { query: { scope } }),
  compaction: () => request('get', '/api/models/compaction'),
  setCompaction: (strategies: Compaction[]) => request('put', '/api/models/compaction', { body: { strategies } }),
  clearCompaction: () => request('delete', '/api/models/compaction'),
  providers: () => request('get', '/api/providers'),
  localServers: () => request('get', '/api/local-model-servers'),
  putProvider: (id: string, body: ProviderChange) => request('put', '/api/providers/{id}', { path: { id }, body }),
  deleteProvider: (id: string) => request('delete', '/api/providers/{id}', { path: { id } }),
  /** Without a kind, tests what is stored. */
  testProvider: (id: string, body?: ProviderChange) => request('post', '/api/providers/{id}/test', { path: { id }, body }),

  servers: () => request('get', '/api/mcp') as Promise<{ items: ServerItem[]; mayAdd: MayAdd }>,
  server: (name: string) => request('get', '/api/mcp/{name}', { path: { name } }) as Promise<ServerItem>,
  addServer: (name: string, config: ServerConfig, secrets: Record<string, string>, scope: ServerAudience | null) =>
    request('post', '/api/mcp/add', { body: { name, config, secrets, ...(scope ? { scope } : {}) } }),
  publishedServers: (search: string, cursor: string | null) =>
    request('get', '/api/mcp-registry/servers', { query: { ...(search ? { search } : {}), ...(cursor ? { cursor } : {}) } }),
  publishedEntry: (name: string, version: string, way: string, values: Record<string, string>) =>
    request('post', '/api/mcp-registry/entry', { body: { name, version, way, values } }) as Promise<{
      name: string
      config: ServerConfig
      secrets: Record<string, string>
    }>,
  changeServer: (name: string, body: ServerPatch) => request('patch', '/api/mcp/{name}', { path: { name }, body }) as Promise<ServerItem>,
  deleteServer: (name: string) => request('delete', '/api/mcp/{name}', { path: { name } }),
  readServers: (text: string) => request('post', '/api/mcp/read', { body: { text } }) as Promise<PastedServers>,
  testServer: (name: string) => request('post', '/api/mcp/{name}/test', { path: { name } }),
  restartServer: (name: string) => request('post', '/api/mcp/{name}/restart', { path: { name } }),
  testNewServer: (name: string, config: ServerConfig, secrets: Record<string, string>, scope: ServerAudience | null) =>
    request('post', '/api/mcp/test', { body: { name, config, secrets, ...(scope ? { scope } : {}) } }),
  setServerSecret: (name: string, secret: string, value: string) =>
    request('put', '/api/mcp/{name}/secrets/{secret}', { path: { name, secret }, body: { value } }),
  deleteServerSecret: (name: string, secret: string) =>
    request('delete', '/api/mcp/{name}/secrets/{secret}', { path: { name, secret } }),
  serverDay: (name: string) => request('get', '/api/mcp/{name}/health', { path: { name } }),
  serverTools: (name: string) => request('get', '/api/mcp/{name}/tools', { path: { name } }) as Promise<{ items: ServerTool[] }>,
  setServerTool: (name: string, tool: string, body: ToolDecision) =>
    request('put', '/api/mcp/{name}/tools/{tool}', { path: { name, tool }, body }) as Promise<ServerTool>,
  serverLogs: (name: string) => request('get', '/api/mcp/{name}/logs', { path: { name } }),
  usage: (query: UsageQuery) => request('get', '/api/usage', { query }),
  budgets: (session?: string) => request('get', '/api/budgets', { query: session === undefined ? {} : { session } }),
  setBudget: (body: BudgetChange) => request('put', '/api/budgets', { body }),
  deleteBudget: (query: BudgetWhose) => request('delete', '/api/budgets', { query }),
  audit: (query: AuditQuery) => request('get', '/api/audit', { query }),
  auditState: (scope: 'tenant' | 'installation') => request('get', '/api/audit/state', { query: { scope } }),
  verifyAudit: (scope: 'tenant' | 'installation') => request('post', '/api/audit/verify', { query: { scope } }),
  system: () => request('get', '/api/system'),
}
