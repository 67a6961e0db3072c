/** How budgets stand for the open session: read once for all places that show it, and anew with every cost. */
import { defineStore } from 'pinia'
import { computed, watch } from 'vue'
import { useSession } from '@/session/store/session'
import { useBudgets } from './useBudgets'
import { tightestOf } from './words'

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
