/** Sums in words. */
import { t } from '@/locales'
import { money } from '@/locales/format'
import type { RequestUsage } from '@/wire/restTypes'
import './texts.en.json'

/** What was paid, as far as prices are known: what nobody knows never reads as free. */
export function costWords({ costUsd, unpricedRequests }: Pick<RequestUsage, 'costUsd' | 'unpricedRequests'>): string {
  if (costUsd === null || costUsd === undefined) return t('usage.unknown')
  return unpricedRequests > 0 ? t('session.costAtLeast', { cost: money(costUsd) }) : money(costUsd)
}
