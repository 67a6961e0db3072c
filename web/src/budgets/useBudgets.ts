/** Budgets as the server tells them, and setting them. */
import { ref, shallowRef } from 'vue'
import { t } from '@/locales'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { BudgetChange, BudgetsPage, BudgetWhose } from '@/wire/restTypes'

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
