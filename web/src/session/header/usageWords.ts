/** What a session has used, in words. */
import { t } from '@/locales'
import { count, money, shortCount } from '@/locales/format'
import type { ContextUse, SessionUsage } from '@/wire/types'

/** How much of the model's window is used; alone where nobody knows how much the model can read. */
export function contextWords({ used, window, windowAssumed }: ContextUse): string {
  const words = windowAssumed ? 'session.contextAssumed' : 'session.context'
  return window ? t(words, { used: shortCount(used), window: shortCount(window) }) : t('session.contextAlone', { used: shortCount(used) })
}

/** The same with what an assumed window means, for who points at it. */
export function contextTitle(context: ContextUse): string {
  const { window, windowAssumed } = context
  if (!window || !windowAssumed) return contextWords(context)
  return `${contextWords(context)}. ${t('session.contextAssumedWhy', { window: count(window) })}`
}

/** From 0 to 1; null where the window is not known. */
export function contextShare({ used, window }: ContextUse): number | null {
  return window ? Math.min(1, used / window) : null
}

/** What was paid, as far as prices are known: models without a price never read as free. */
export function costWords({ totalCost, unpricedRequests = 0, budget }: SessionUsage): string {
  if (unpricedRequests > 0 && !totalCost) return money(null)
  const spent = unpricedRequests > 0 ? t('session.costAtLeast', { cost: money(totalCost) }) : money(totalCost)
  return budget ? t('session.costOf', { cost: spent, budget: money(budget) }) : spent
}
