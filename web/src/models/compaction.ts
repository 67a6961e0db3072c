/** What leaves a context where earlier turns do not fit, as the page offers it. */
import { i18n } from '@/locales'

/** Strategies with spaces between them; none = what is set beyond. */
export const WAYS: readonly string[] = ['', 'delete-middle', 'delete-old', 'partial-summary', 'none']

export function strategiesWords(strategies: readonly string[]): string {
  const { t } = i18n.global
  const way = strategies.join(' ')
  if (way === '') return t('compaction.usual')
  if (way === 'delete-middle delete-old') return t('compaction.middle-then-old')
  return WAYS.includes(way) ? t(`compaction.${way}`) : strategies.join(', ')
}
