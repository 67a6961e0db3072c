/**
 * The types of the REST door as the page names them. They are those of its description; by hand stands here only what
 * the description leaves open, and that has to fit into it.
 */
import type { QueryOf, Schemas } from 'sepal-client'
import type { Queue, ToolAnnotations } from './types'

/** A type of the description with some fields said more exactly; a field that it does not have does not compile. */
type Exactly<T, Fields extends { [Name in keyof Fields]: Name extends keyof T ? T[Name] : never }> = Omit<T, keyof Fields> & Fields

export type Installation = Schemas['Installation']
export type Me = Schemas['Me']
export type Right = Schemas['UserRight']

export type SessionState = Schemas['SessionState']
export type SessionItem = Schemas['SessionItem']
export type BulkAction = Schemas['BulkAction']
export type ImportDone = Schemas['ImportDone']
export type SharedItem = Schemas['SharedItem']
export type ShareAudience = Schemas['ShareAudience']
export type FoundSession = Schemas['FoundSessionItem']
export type SearchHit = Schemas['HitItem']
export type SnippetPiece = Schemas['PieceItem']

/** A session in which calls wait; its queue is that of `tool:queue`. */
export type WaitingItem = Exactly<Schemas['WaitingItem'], { queue: Queue }>
export type WaitingPage = Exactly<Schemas['ApprovalsPage'], { items: WaitingItem[] }>
export type WaitingCount = Schemas['WaitingCount']

export type PublishedServer = Schemas['PublishedServerItem']
export type PublishedWay = Schemas['PublishedWay']
export type PublishedQuestion = Schemas['PublishedQuestion']

/** `retiresAt` (a date) is not in the description of every server. */
export type Model = Schemas['AvailableModel'] & { retiresAt?: string | null }
export type Models = Omit<Schemas['AvailableModels'], 'models'> & { models: Model[] }
export type ModelDefaults = Schemas['ModelDefaults']
export type Compaction = Schemas['Compaction']
export type CompactionDefaults = Schemas['CompactionDefaults']

export type ProviderKind = Schemas['ProviderWire']
export type ProviderItem = Schemas['ProviderItem']
export type ProviderChange = Schemas['PutProviderRequest']
export type ProviderTest = Schemas['ProviderTested']
export type LocalServer = Schemas['LocalServerItem']

export type UsagePage = Schemas['UsagePage']
export type UsageItem = Schemas['UsageItem']
export type UsagePerson = Schemas['UsagePerson']
export type RequestUsage = Schemas['RequestUsage']
export type AuditQuery = QueryOf<'get', '/api/audit'>
export type AuditRecord = Schemas['AuditRecord']
export type AuditPage = Schemas['AuditRecordsPage']
export type AuditState = Schemas['AuditState']
export type AuditVerification = Schemas['AuditVerification']

export type UsageQuery = QueryOf<'get', '/api/usage'>
export type UsageParts = Schemas['UsageParts']

export type BudgetItem = Schemas['BudgetItem']
export type BudgetsPage = Schemas['BudgetsPage']
export type BudgetChange = Schemas['SetBudgetRequest']
export type BudgetWhose = QueryOf<'delete', '/api/budgets'>

/** The entry of an MCP server as files and `/api/mcp` spell it (docs/mcp-servers.md). */
export type ServerConfig = {
  transport?: Schemas['ServerTransport']
  enabled?: boolean
  description?: string
  toolPrefix?: string
  includeTools?: string[]
  excludeTools?: string[]
  timeout?: number
  trusted?: boolean
  sampling?: boolean
  command?: string
  args?: string[]
  allowScripts?: boolean
  /** Its files; the answers are those that are no secrets. */
  bundle?: { sha256: string; values?: Record<string, string> }
  env?: Record<string, string>
  cwd?: string
  containerImage?: string
  containerEnv?: Record<string, string>
  containerMemory?: number
  containerCpu?: number
  workspace?: 'none' | 'ro' | 'rw'
  network?: 'none' | string[]
  secretHosts?: Record<string, string[]>
  url?: string
  headers?: Record<string, string>
}

/** A JSON merge patch of an entry: `null` removes a member, or a name in a map. */
export type ServerPatch = {
  [Field in keyof ServerConfig]?: ServerConfig[Field] extends Record<string, infer Value> | undefined
    ? Record<string, Value | null> | null
    : ServerConfig[Field] | null
}

export type ServerItem = Exactly<Schemas['Server'], { config?: ServerConfig | null }>
/** For whom a server is. */
export type ServerAudience = NonNullable<Schemas['AddServerRequest']['scope']>
/** The transports of which I may add servers, by for whom. */
export type MayAdd = Schemas['MayAdd']
export type ServerTool = Exactly<Schemas['ServerTool'], { annotations: ToolAnnotations }>
/** What is decided about a tool, and the `hash` of the definition that was read. */
export type ToolDecision = Exactly<Schemas['ToolRequest'], { effect?: Schemas['ToolEffect'] | null }>
/** The servers of a text that was pasted, and what cannot be used of it. */
export type PastedServers = Exactly<Schemas['ReadServersResponse'], { servers: { name: string; config: ServerConfig }[] }>
export type ServerTest = Schemas['TestServerResponse']
/** What an entry would install. */
export type PackagePreview = Schemas['PackageResponse']
/** How far a server's package is. */
export type PackageInstallation = Schemas['InstallationResponse']
/** What the gateway saw of a server in the last 24 hours. */
export type ServerDay = Schemas['ServerDay']

export type System = Schemas['SystemInfo']

/** An OpenID provider at which people sign in. */
export interface SignInProvider {
  id: string
  /** The name on its button. */
  name: string
}

/** A refusal. Some say more than the description knows, each of its own kind. */
export type Problem = Partial<Schemas['Problem']> & {
  installation?: Installation
  setupNeeded?: boolean
  signInProviders?: SignInProvider[]
  /** The account that the sign-in proxy names for this browser. */
  proxyAccount?: string | null
  /** One word for why a sign-in at a provider was refused. */
  reason?: string
  /** The tool as it is now, where its definition is another than the one that was decided about. */
  tool?: ServerTool
}
