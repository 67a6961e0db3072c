/** Loads and sets budgets, and says them in words. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef, watch } from 'vue'
import { t } from '@/locales'
import { clock, money, utcDay } from '@/locales/format'
import { useSession } from '@/session/store/session'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { BudgetChange, BudgetItem, BudgetsPage, BudgetWhose } from '@/wire/restTypes'
import './texts.en.json'

export function useBudgets() {
  const page = shallowRef<BudgetsPage | null>(null)
  const problem = ref('')
  let newest = 0

  async function load(session?: string): Promise<void> {
    newest += 1
    const turn = newest
    await tryTo(async () => {
      const told = await rest.budgets(session)
      if (turn === newest) page.value = told
    })
  }

  async function tryTo(work: () => Promise<void>): Promise<boolean> {
    problem.value = ''
    try {
      await work()
      return true
    } catch (error) {
      problem.value = t('budgets.failed', { reason: error instanceof RequestError ? error.message : '' })
      return false
    }
  }

  const set = (change: BudgetChange) => tryTo(async () => void (await rest.setBudget(change)))
  const remove = (whose: BudgetWhose) => tryTo(async () => void (await rest.deleteBudget(whose)))
  return { page, problem, load, set, remove }
}

// The budgets of the open session: read once for all places that show them, and again after every cost.

export const useSessionBudgets = defineStore('sessionBudgets', () => {
  const session = useSession()
  const { page, problem, load, set } = useBudgets()
  const inForce = computed(() => (session.id === null ? [] : (page.value?.inForce ?? [])))
  const tightest = computed(() => tightestOf(inForce.value))
  const tight = computed(() => inForce.value.filter(({ isNear, isExhausted }) => isNear || isExhausted))

  watch(
    // Tokens count too: of a session that has just begun the gateway may not know yet when it is asked.
    () => [session.id, session.usage?.totalCost, session.usage?.totalTokens, session.budgetWord],
    () => void reload(),
    { immediate: true },
  )
  watch(() => session.id, () => (page.value = null))

  async function reload(): Promise<void> {
    if (session.id !== null) await load(session.id)
  }

  return { inForce, tightest, tight, problem, reload, set }
})

// The words for budgets, and the tightest of them.

/** Whose budget it is, and in which time it may be spent. */
export function nameOf({ level, period, subject, name, source }: BudgetItem): string {
  if ((level === 'group_each' || level === 'group_pooled') && name) return t(`budgets.${level}.${period}`, { name })
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
