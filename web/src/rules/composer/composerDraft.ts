/** What a person chooses of one rule that is made from a call, and the rule that it becomes; pure. */
import type { NewRule, RuleConditions, RuleOffer, RuleReach } from '@/rules/types'

export type ChosenScope = NewRule['scope']

export interface ComposerDraft {
  reach: RuleReach
  /** "Arguments like these", as far as they were changed; null = as they are offered. */
  alike: RuleConditions | null
  scope: ChosenScope
  /** Hours; null = until it is taken back. Rules of a session end with it. */
  hours: number | null
}

/** Call and card that a rule is made from. */
export interface RuleSource {
  session: string
  callId: string
}

/** Ways to let a rule end by itself, in hours, the shortest first. */
export const HOURS = [1, 8, 7 * 24, null] as const

/** The rule about the fewest calls, for this session alone; null where none is offered. */
export function firstDraft(offers: readonly RuleOffer[]): ComposerDraft | null {
  const narrow = offers.find(({ reach }) => reach !== 'tool')
  // The whole tool is never chosen for anybody, also where it is all that is offered.
  return narrow === undefined ? null : { reach: narrow.reach, alike: null, scope: 'session', hours: HOURS[0] }
}

/** The conditions of the chosen reach; null where it is not offered. */
export function conditionsOf(draft: ComposerDraft, offers: readonly RuleOffer[]): RuleConditions | null {
  const offer = offers.find(({ reach }) => reach === draft.reach)
  if (offer === undefined) return null
  return draft.reach === 'arguments' ? (draft.alike ?? offer.when) : offer.when
}

export function newRuleOf(draft: ComposerDraft, offers: readonly RuleOffer[], { session, callId }: RuleSource): NewRule | null {
  const when = conditionsOf(draft, offers)
  if (when === null) return null
  const ends = draft.scope !== 'session' && draft.hours !== null ? { expiresInHours: draft.hours } : {}
  return { effect: 'allow', scope: draft.scope, session, callId, when, ...ends }
}

/** The command begins with the first `count` words only. */
export function withWords(when: RuleConditions, at: number, words: string[]): RuleConditions {
  return { ...when, command: when.command?.map((prefix, index) => (index === at ? { ...prefix, words } : prefix)) }
}

export function withFolder(when: RuleConditions, at: number, below: string): RuleConditions {
  return { ...when, paths: when.paths?.map((path, index) => (index === at ? { ...path, below } : path)) }
}

export function withHost(when: RuleConditions, at: number, host: string): RuleConditions {
  return { ...when, hosts: when.hosts?.map((one, index) => (index === at ? { ...one, host } : one)) }
}

/** Words that a command may begin with, the most of them first: they can be cut from the end. */
export function cutsOf(words: readonly string[]): string[][] {
  return words.map((_, cut) => words.slice(0, words.length - cut))
}
