/** Rules as a list shows them; pure. */
import type { RuleEffect, RuleItem } from '@/rules/types'

export interface RuleGroup {
  /** What its rules do with calls; those about hosts are about none. */
  effect: RuleEffect | 'network'
  rules: RuleItem[]
}

/** What counts first stands first. */
const EFFECTS = ['deny', 'ask', 'allow'] as const

/** Without groups that have no rule; within each the order of the server, which is that in which they count. */
export function groupsOf(rules: readonly RuleItem[]): RuleGroup[] {
  const ofCalls = rules.filter((rule) => rule.network === undefined)
  const groups: RuleGroup[] = EFFECTS.map((effect) => ({ effect, rules: ofCalls.filter((rule) => rule.effect === effect) }))
  groups.push({ effect: 'network', rules: rules.filter((rule) => rule.network !== undefined) })
  return groups.filter((group) => group.rules.length > 0)
}

/**
 * Rules that can go together without a look at each: without them no more runs than before. What refuses or asks stays,
 * however long it had nothing to do.
 */
export function leftoversOf(rules: readonly RuleItem[]): RuleItem[] {
  return rules.filter(({ mayRemove, state, isUnused, effect }) => mayRemove && effect === 'allow' && (state === 'expired' || isUnused))
}
