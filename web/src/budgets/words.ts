/** Budgets in words, and which of them is the tightest. */
import { t } from '@/locales'
import { clock, money, utcDay } from '@/locales/format'
import type { BudgetItem } from '@/wire/restTypes'

/** Whose budget it is, and in which time it may be spent. */
export function nameOf({ level, period, subject, name, source }: BudgetItem): string {
  if (source === 'each' && level !== 'tenant') return t(`budgets.each.${level}.${period}`)
  if (name) return t(`budgets.of.${period}`, { name })
  if (level === 'session' && subject) return t('budgets.level.session.whole')
  return t(`budgets.level.${level}.${period}`)
}

/** What is left, where that may be told. */
export function leftWords({ leftUsd = null, limitUsd, isNear, isExhausted }: BudgetItem): string {
  const limit = money(limitUsd)
  if (isExhausted) return t('budgets.spent', { limit })
  if (leftUsd === null) return t(isNear ? 'budgets.limitNear' : 'budgets.limit', { limit })
  return t(isNear ? 'budgets.leftNear' : 'budgets.left', { left: money(leftUsd), limit })
}

export function resetWords({ resetsAt }: BudgetItem): string {
  return resetsAt ? t('budgets.resets', { day: utcDay(resetsAt.slice(0, 10)), time: clock(resetsAt) }) : ''
}

/** From 0 to 1; null where the sums are for others. */
export function shareOf({ usedUsd = null, limitUsd }: BudgetItem): number | null {
  if (usedUsd === null) return null
  return limitUsd > 0 ? Math.min(1, usedUsd / limitUsd) : 1
}

/** The budget that bites first: a hard one before those that only warn. */
export function tightestOf(budgets: readonly BudgetItem[]): BudgetItem | null {
  const left = ({ leftUsd, isExhausted, isHard }: BudgetItem) => (isHard ? 0 : 1e9) + (isExhausted ? 0 : (leftUsd ?? 1e6))
  return [...budgets].sort((a, b) => left(a) - left(b))[0] ?? null
}

/** Dollars that a person typed; null where it is no amount. */
export function dollarsOf(typed: string): number | null {
  const amount = Number(typed.trim().replace(',', '.'))
  return typed.trim() !== '' && Number.isFinite(amount) && amount >= 0 && amount <= 1_000_000 ? amount : null
}
