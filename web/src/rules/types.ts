/**
 * Rules about calls as the page names them. They are those of the description of the REST door; by hand stands here only
 * what the description leaves open.
 */
import { describeCall, oneLineArguments } from '@/approval/call/describe'
import { t } from '@/locales'
import { count, date, dateMinute, dateTime } from '@/locales/format'
import { inOneLine } from '@/text/shorten'
import type { Schemas } from 'sepal-client'
import type { JsonObject } from '@/wire/types'
import './texts.en.json'

export type RuleEffect = Schemas['ToolEffect']
export type RuleScope = Schemas['RuleScope']
/** Where a rule was written down. */
export type RuleOrigin = Schemas['RuleOrigin']
export type RuleState = Schemas['RuleState']
/** About how many calls a rule is that is made from one. */
export type RuleReach = Schemas['RuleReach']

/** What must hold for a call; all that is named must hold. */
export interface RuleConditions {
  /** The command begins with one of these, part by part. */
  command?: { words: string[]; more: boolean; anyWords?: boolean }[]
  exactly?: JsonObject
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

export type RuleItem = Omit<Schemas['RuleItem'], 'when' | 'except' | 'examples'> & { when: RuleConditions; except: RuleConditions[]; examples?: RuleExamples }

/** A rule to be given. */
export type NewRule = Omit<Schemas['NewRuleBody'], 'effect' | 'scope' | 'when' | 'except' | 'examples'> & {
  effect: RuleEffect
  scope: 'session' | 'person' | 'group' | 'tenant'
  when?: RuleConditions
  except?: RuleConditions[]
  examples?: RuleExamples
}

export type RuleOffer = Omit<Schemas['RuleOfferItem'], 'when' | 'examples'> & { when: RuleConditions; examples: RuleExamples }
export type RulePreview = Omit<Schemas['RulePreview'], 'examples'> & { examples?: RuleExamples }
export type RuleGiven = Omit<Schemas['CreateRuleResponse'], 'rule'> & { rule: RuleItem }

/** A call in one's own sessions that would be decided otherwise. */
export type ChangedCall = Omit<Schemas['ChangedCall'], 'arguments'> & { arguments: JsonObject }
export type Simulation = Omit<Schemas['SimulationResponse'], 'changed'> & { changed: ChangedCall[] }

// Words for rules, beside the sentence that the server makes of each.

/** A call of an example in one line; of a long one the beginning and the end. */
export function exampleLine({ tool, arguments: args }: RuleExample): string {
  return inOneLine(`${tool} ${argumentsLine(tool, args)}`.trim())
}

/** Everything that the call has, as two examples may differ in any part. */
function argumentsLine(tool: string, args: JsonObject): string {
  const isOnlyCommand = describeCall({ name: tool, args }).verb === 'run' && Object.keys(args).length === 1
  return isOnlyCommand ? oneLineArguments({ name: tool, args }) : JSON.stringify(args)
}

/** Where it holds, how long, and how often it decided something. */
export function factsOf(rule: RuleItem): string {
  const { origin, group, until, createdAt, uses, lastUsedAt, isUnused } = rule
  return [
    t(`rules.origin.${origin}`, { group: group?.name ?? '' }),
    until ? t('rules.until', { when: dateMinute(until) }) : '',
    createdAt ? t('rules.given', { when: date(createdAt) }) : '',
    rule.network ? '' : t('rules.uses', { n: uses, count: count(uses) }),
    lastUsedAt ? t('rules.lastUsed', { when: dateTime(lastUsedAt) }) : '',
    isUnused ? t('rules.unused') : '',
  ]
    .filter(Boolean)
    .join(' · ')
}
