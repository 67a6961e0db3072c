/**
 * What crosses the wire, as docs/protocol.md and the server's event table name it,
 * and the view models that the reducer makes of it.
 */
import type { Schemas } from 'sepal-client'

export type Seq = number

export interface Person {
  id: string
  name: string
}

/** Every end state has a word of its own: `unknown` is never shown as a failure. */
export type CallStatus =
  | 'pending'
  | 'approved'
  | 'rejected'
  | 'executing'
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'unknown'

export type RunsInKind = 'sandbox' | 'container' | 'remote'

export interface RunsIn {
  kind: RunsInKind
  /** Hosts that it may reach; empty means none for a sandbox. */
  hosts: string[]
}

export type JsonObject = Record<string, unknown>

/** Hints of the MCP server about its tool; claims, not facts. */
export type ToolAnnotations = {
  title?: string
  readOnlyHint?: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint?: boolean
}

/** A file as it was when the model asked to write it; a hint from inside the sandbox. */
export interface FileFacts {
  exists: boolean
  /** Only of text that is short enough to be counted. */
  lines?: number
  bytes: number
  isText: boolean
}

/**
 * One entry of `tool:queue.calls`; `tool:approval_required` has the same fields. What is not there has no field: a
 * call that could not be valid (no such tool, no JSON) has no facts of a tool.
 */
export type QueueCall = Pick<ViewedCall, 'askedBy'> & {
  callId: string
  name: string
  args?: JsonObject
  /** The same as JSON text, where `args` holds a whole number above 2^53, which a parser here would round. */
  argsText?: string
  /** Counted from 1. */
  queuePosition: number
  totalInQueue: number
  server: string
  title?: string
  description: string
  schema?: JsonObject
  annotations?: ToolAnnotations
  runsIn?: RunsIn
  /** The definition of the tool changed, and when that was seen (RFC 3339). */
  drift?: { since: string }
  /** The file that a write of the sandbox would make or replace; none where that is not known. */
  file?: FileFacts
  why: string
  /** Hash of exactly what would run; sent back with the decision. */
  digest?: string
  /** RFC 3339. */
  since: string
  expiresAt?: string
  /** A rule wants a passkey or the password with the yes. */
  freshGesture?: boolean
  mayDecide: boolean
  /** Whose yes it needs, where the owner's alone does not do: `somebody_else`, `two`, `role:` and a role, `owner` among others. */
  approvers?: string[]
  /** Who said yes so far, while others still have to. */
  consents?: Person[]
  status: CallStatus
  /** The beginning of what a completed call gave. */
  result?: string
  /** The beginning of why a call gave nothing. */
  error?: string
  decidedBy?: Person
  reason?: string
  edited: boolean
  originalArgs?: JsonObject
  /** Who changed the arguments last. */
  editedBy?: Person
  review?: CallReview
  /** What the model said with the call; shown below the facts. */
  said?: string
  firstUse: boolean
} & Triable

/** A model that may approve the call in the place of the person. All but `allowed` leaves it to them. */
export interface CallReview {
  status: 'running' | 'allowed' | 'refused' | 'doubted' | 'failed'
  /** None where nobody was asked. */
  model?: string
  reason?: string
  /** None where the price is not known. */
  costUsd?: number
}

/** A call as the transcript records it. */
export interface CallView extends ViewedCall, TookResult {
  callId: string
  name: string
  server: string
  args: JsonObject
  originalArgs?: JsonObject
  status: CallStatus
  decidedBy?: Person
  /** Of the model that approved it. */
  review?: CallReview
  reason?: string
  edited: boolean
  /** Who changed the arguments, where it was not who decided. */
  editedBy?: Person
  output?: string
  durationMs?: number
  exitCode?: number
  truncated?: { bytes: number; link?: string }
  /** Pictures and other files that the tool returned. */
  attachments?: Attachment[]
  /** All that it returned, where that is more than a text and pictures. */
  blocks?: ResultBlock[]
  /** What came between a call and its end, where its outcome is unknown. */
  cause?: string
  progress?: string
  digest?: string
  /** By what whoever approved it showed that they were there: `passkey` or `password`. */
  gesture?: string
  /** What a person said of a call of unknown outcome. */
  settled?: { happened: boolean; by?: Person }
}

export interface Decision extends TakesResult {
  callId: string
  approved: boolean
  reason?: string
  args?: JsonObject
  /** Instead of `args`, where it holds such a number as well. */
  argsText?: string
  digest?: string
  /** What proves that the person confirmed it, where a rule wants that. */
  gesture?: string
  /** With `approved: false`: only takes an approval back, however often it is sent. */
  takeBack?: true
}

export interface DecideAll {
  callIds: string[]
  approved: boolean
  reason?: string
  gesture?: string
}

export interface Settlement {
  callId: string
  happened: boolean
}

/** A journaled event as `system:ready.state.transcript` and the events route give it: its `args` are those of the live one. */
export type StoredEvent = Schemas['EventItem']

export interface WaitingMessage {
  text: string
  attachments?: Attachment[]
  clientMessageId?: string
  seq: Seq
}

export interface ContextUse {
  used: number
  /** About how many tokens of input the next request takes, before its message; null where nobody can tell. */
  nextInput?: number | null
  /** Tokens that the model can read; null where nobody knows. */
  window: number | null
  /** Whether nobody said so, and an ordinary window is assumed. */
  windowAssumed?: boolean
  parts?: Record<string, number>
  /** Whether the session reads as much as the model's window holds, not what the settings say. */
  whole?: boolean
  /** What the model no longer reads; `fromSeq` is the oldest message of a person that it does. */
  leftOut?: { messages: number; fromSeq: Seq | null; wholeReadsMore?: boolean } | null
  /** Who answered last, and what the tokens of that request were for. */
  request?: { provider: string; model: string; parts: ContextParts } | null
}

export interface ContextParts {
  system: number
  /** By server. */
  tools: Record<string, number>
  /** What was read beside the conversation, by source; journals of early releases do not say it. */
  context?: Record<string, number>
  history: number
  results: number
  message: number
  attachments: number
  reasoning: number
}

/** What one more model request would take, by what the last one did. */
export interface GoingOn {
  tokens: number
  cachedTokens: number
  /** US dollars; null where the price is not known. */
  cost: number | null
}

export interface SessionUsage {
  totalTokens: number
  totalCost: number | null
  /** Requests whose model has no known price; they are not in the cost. */
  unpricedRequests?: number
  budget: number | null
  context: ContextUse
  goingOn?: GoingOn | null
  seq: Seq
}

export interface RunningTurn {
  turn: number
  iteration: number
  attempt: number
  phase: 'model' | 'calls' | 'waiting'
  text: string
  reasoning: string
  since: string
}

/** `tool:queue`. */
export interface Queue {
  calls: QueueCall[]
  /** Those that wait; absent where none does. */
  elicitations?: ElicitationItem[]
  seq: Seq
}

export interface ReadyState {
  transcript: { events: StoredEvent[]; more: boolean }
  queue: Queue
  usage: SessionUsage
  running: RunningTurn | null
  waiting: WaitingMessage[]
}

export interface SandboxState {
  kind: 'docker' | 'bubblewrap' | 'none'
  network: string
  ok: boolean
  /** Too little is left on the disk: what may write a workspace is paused until there is more. */
  diskPressure?: { freeBytes: number; minFreeBytes: number }
}

/** The assistant of a session. */
export interface SessionAssistantItem {
  id: string
  version: number
  name: string
  description: string
  openings: string[]
}

export interface SystemReady {
  /** The kind of provider, as clients of old know it (`claude`). */
  provider: string
  /** The configured provider. */
  providerId: string
  model: string
  /** How much the model may think: a level or a number of tokens as text; null or absent = as it is set for the model. */
  effort?: string | null
  /** What the session was started with, in the version that is in use. */
  assistant?: SessionAssistantItem | null
  /** What the session chose to leave its context where earlier turns do not fit; empty or absent = what the settings say. */
  compaction?: string[]
  /** Tokens of history that the settings let the model read; `null` = as many as its window holds. */
  configuredMaxTokens: number | null
  /** Tokens that the model can read. */
  modelMaxTokens: number
  sessionId: string
  containerId?: string
  journalId: string
  seq: Seq
  sandbox: SandboxState
  storage: { kind: string }
  version: string
  user: Person & { role: string }
  limits: { frameBytes: number; commandsPerSocket: number }
  resumed: boolean
  title: string | null
  state: ReadyState
}

export type ErrorCategory = 'validation' | 'transient' | 'external' | 'internal'

// Attachments of messages and results.

/** A file with a message; its content is at `/api/sessions/{id}/attachments/{attachment}`. */
export interface Attachment {
  id: string
  name: string
  mediaType: string
  bytes: number
  width?: number | null
  height?: number | null
  /** The resource of an MCP server that it was read from. */
  source?: ResourceSource | null
}

/** Where a resource was read. */
export interface ResourceSource {
  server: string
  uri: string
}

/** A piece of what a tool returned. */
export type ResultBlock = { audience?: 'user' | 'assistant' } & (
  | { type: 'text'; text: string }
  | { type: 'file'; attachment: Attachment; uri?: string; mimeType?: string }
  | { type: 'resource'; uri: string; mimeType?: string; text: string }
  | { type: 'resource_link'; uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number }
)

// Dry runs: calls that run in a copy of the workspace before anybody decides them.

/** What a card says of that. */
type Triable = {
  /** None where nobody asked for it. */
  dryRun?: DryRun
  /** Why it cannot be tried so. */
  noDryRun?: 'remote' | 'network' | 'open_world' | 'no_workspace' | 'no_tool'
}

/** A yes that gives the call the result of its dry run, by what names it: the call does not run. */
type TakesResult = { dryRun?: string }

/** That this was so. */
type TookResult = { tookResult?: boolean }

/** A call that was tried in a copy of the workspace. It is no execution: the call goes on waiting. */
export type DryRun = {
  status: 'running' | 'completed' | 'failed' | 'not_run'
  /** Who asked for it. */
  by: { id: string; name: string }
  /** RFC 3339. */
  since: string
  /** What it runs. */
  digest: string
  /** The beginning of what the tool gave, or why it gave nothing. */
  text?: string
  cutBytes?: number
  exitCode?: number
  durationMs?: number
  preparedMs?: number
  /** Folders are counted apart from files and links. */
  counts?: { created: number; modified: number; deleted: number; folders: number }
  /** The first of the paths that changed. */
  files?: { path: string; change: 'created' | 'modified' | 'deleted'; diff?: string; why?: 'no_content' | 'binary' | 'too_large' | 'unread' }[]
  /** What it could not see. */
  unseen?: ('more_files' | 'files' | 'attachments' | 'questions' | 'live_process')[]
  /** What names all that came of it, where a yes may take it. */
  result?: string
  /** Why none may. */
  noResult?: 'no_answer' | 'files' | 'attachments' | 'questions' | 'live_process' | 'too_large' | 'changing' | 'store'
}

// Questions of servers while their calls run.

interface Asked {
  elicitationId: string
  callId: string
  server: string
  message: string
  askedAt: string
}

/** A form that a server wants to have filled in while a call of it runs. */
export interface FormItem extends Asked {
  mode: 'form'
  /** JSON Schema of an object with flat fields. */
  schema: Record<string, unknown>
  /** The names of the fields in the server's order. */
  order: string[]
}

/** A page that a server wants opened. */
export interface PageItem extends Asked {
  mode: 'url'
  /** `https`, or `http` on loopback. */
  url: string
  /** Whether the person went there; it goes on until all is done. */
  opened: boolean
}

/** A completion that a server wants of a model. */
export interface SamplingItem extends Asked {
  mode: 'sampling'
  /** Whether it waits for the person, for the model, or for the person who reads the answer. */
  stage: 'requested' | 'asking' | 'answered' | 'failed'
  systemPrompt: string | null
  messages: { role: 'user' | 'assistant'; text: string }[]
  /** Tokens of the longest answer. */
  maxTokens: number
  temperature: number | null
  stopSequences: string[]
  model: { provider: string; model: string }
  /** About how many tokens the model reads. */
  inputTokens: number
  /** What a yes is about; none while nothing waits for one. */
  digest: string | null
  answer?: { text: string; model: string; stopReason: string }
}

export type ElicitationItem = FormItem | PageItem | SamplingItem

/** Whether it waits for the person, and not for a model. */
export function awaitsPerson(asked: ElicitationItem): boolean {
  return asked.mode !== 'sampling' || asked.stage !== 'asking'
}

/** News of a running call. */
export interface CallProgress {
  /** In words; empty where it says nothing. */
  text: string
  /** How far it is, in the units of `total`. */
  value: number
  /** When it is over; none = nobody knows. */
  total: number | null
}

// Views of tools.

/** The part of a call that a view of its tool needs. */
interface ViewedCall {
  /** The address of the view at the tool's server, if the tool has one. */
  view?: string
  /** The result as data, where the tool gave it as that too. */
  structured?: Record<string, unknown>
  /** The view that asked for the call; none where the model did. */
  askedBy?: AskingView
}

export interface AskingView {
  /** The call whose view it is. */
  callId: string
  /** The name of its tool. */
  name: string
  /** The page's own id of that showing of the view. */
  viewId: string
  /** The page's own id of the request. */
  requestId: string
}
