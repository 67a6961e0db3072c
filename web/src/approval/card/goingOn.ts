/** What one more model request roughly costs, for who decides whether it goes on. */
import { t } from '@/locales'
import { count, money } from '@/locales/format'
import type { GoingOn } from '@/wire/types'

export function goingOnWords(next: GoingOn | null | undefined): string {
  if (!next) return ''
  const sent = { tokens: count(next.tokens), cached: count(next.cachedTokens) }
  return next.cost === null ? t('approval.goingOnUnpriced', sent) : t('approval.goingOn', { cost: money(next.cost), ...sent })
}
