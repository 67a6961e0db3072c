/**
 * Rules about calls as `/api/rules` spells them (`src/gateway/http/rules`). The description of the door takes over as
 * soon as it has them.
 */
import type { JsonObject } from '@/wire/types'

export type RuleEffect = 'allow' | 'ask' | 'deny'
export type RuleScope = 'session' | 'person' | 'tenant' | 'installation'
/** Where a rule was written down. */
export type RuleOrigin = 'session' | 'person' | 'tenant' | 'tool' | 'settings'
export type RuleState = 'active' | 'expired' | 'drifted'
/** About how many calls a rule is that is made from one. */
export type RuleReach = 'exact' | 'arguments' | 'tool'

/** What must hold for a call; all that is named must hold. */
export interface RuleConditions {
  /** The command begins with one of these, part by part. */
  command?: { words: string[]; more: boolean }[]
  exactly?: unknown
  /** An empty `below` is the workspace itself. */
  paths?: { argument: string; below: string }[]
  hosts?: { argument: string; host: string }[]
  schema?: JsonObject
  costAboveUsd?: number
  costBelowUsd?: number
}

export interface RuleExample {
  server: string
  tool: string
  arguments: JsonObject
}

/** The rule decides `matching` and says nothing of `other`; none where it is about every call. */
export interface RuleExamples {
  matching: RuleExample
  other?: RuleExample
}

export interface RuleItem {
  id: string
  effect: RuleEffect
  scope: RuleScope
  origin: RuleOrigin
  state: RuleState
  sentence: string
  name?: string
  server: string
  tool: string
  when: RuleConditions
  except: RuleConditions[]
  /** Whether it also asks what nearer rules allow. */
  binding: boolean
  examples?: RuleExamples
  createdBy?: string
  createdAt?: string
  until?: string
  uses: number
  lastUsedAt?: string
  /** Not used for 30 days. */
  isUnused: boolean
  mayRemove: boolean
}

/** A rule to be given. */
export interface NewRule {
  effect: RuleEffect
  scope: 'session' | 'person' | 'tenant'
  /** For that scope, and for `callId`. */
  session?: string
  /** A call that waits: the rule is about its tool as it is now, and the call is approved with it. */
  callId?: string
  /** What was shown of that call. */
  digest?: string
  server?: string
  tool?: string
  when?: RuleConditions
  except?: RuleConditions[]
  binding?: boolean
  expiresInHours?: number
  name?: string
  examples?: RuleExamples
}

export interface RuleOffer {
  reach: RuleReach
  when: RuleConditions
  /** For the rest of the session. */
  sentence: string
  examples: RuleExamples
}

export interface RulePreview {
  sentence: string
  examples?: RuleExamples
}

export interface RuleGiven {
  rule: RuleItem
  hasApproved: boolean
}

/** A call that would be decided otherwise; `arguments` only of calls in one's own sessions. */
export interface ChangedCall {
  session: string
  server: string
  tool: string
  at: string
  arguments?: JsonObject
  before: RuleEffect
  after: RuleEffect
  because: string
}

export interface Simulation {
  /** How many calls were looked at, 500 at most. */
  calls: number
  /** The newest first. */
  changed: ChangedCall[]
}
