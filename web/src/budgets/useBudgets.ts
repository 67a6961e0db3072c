/** Budgets as the server tells them, and setting them. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef, watch } from 'vue'
import { t } from '@/locales'
import { useSession } from '@/session/store/session'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { BudgetChange, BudgetsPage, BudgetWhose } from '@/wire/restTypes'
import { tightestOf } from './words'

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
    () => [session.id, session.usage?.totalCost, session.budgetWord],
    () => void reload(),
    { immediate: true },
  )
  watch(() => session.id, () => (page.value = null))

  async function reload(): Promise<void> {
    if (session.id !== null) await load(session.id)
  }

  return { inForce, tightest, tight, problem, reload, set }
})
