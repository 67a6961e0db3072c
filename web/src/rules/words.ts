/** Rules in words, beside the sentence that the server makes of each. */
import { describeCall, oneLineArguments } from '@/approval/call/describe'
import { t } from '@/locales'
import { count, date, dateTime } from '@/locales/format'
import { inOneLine } from '@/text/oneLine'
import type { JsonObject } from '@/wire/types'
import type { RuleExample, RuleItem } from './types'
import './texts.en.json'

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
  const { origin, until, createdAt, uses, lastUsedAt, isUnused } = rule
  return [
    t(`rules.origin.${origin}`),
    until ? t('rules.until', { when: dateTime(until) }) : '',
    createdAt ? t('rules.given', { when: date(createdAt) }) : '',
    rule.network ? '' : t('rules.uses', { n: uses, count: count(uses) }),
    lastUsedAt ? t('rules.lastUsed', { when: dateTime(lastUsedAt) }) : '',
    isUnused ? t('rules.unused') : '',
  ]
    .filter(Boolean)
    .join(' · ')
}
