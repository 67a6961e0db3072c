/** Rules as the server tells them, and taking them back. */
import { ref, shallowRef } from 'vue'
import { t } from '@/locales'
import { door, goneRules, isMissing, reasonOf } from '@/rules/door'
import type { RuleItem } from '@/rules/types'
import { announce } from '@/ui/announcer'
import '@/rules/texts.en.json'

export function useRules(session: () => string | undefined) {
  const rules = shallowRef<RuleItem[] | null>(null)
  const problem = ref('')
  const told = ref('')
  const isBusy = ref(false)
  let newest = 0

  async function load(): Promise<void> {
    newest += 1
    const turn = newest
    problem.value = ''
    try {
      const found = await door.rules(session())
      if (turn === newest) rules.value = found.rules
    } catch (error) {
      if (turn === newest) problem.value = t('rules.failed', { reason: reasonOf(error) })
    }
  }

  /** What is gone already was taken back by somebody. The first refusal ends it. */
  async function takeBack(all: readonly RuleItem[]): Promise<void> {
    if (isBusy.value) return
    isBusy.value = true
    problem.value = ''
    told.value = ''
    try {
      for (const rule of all) await takeOneBack(rule)
      told.value = t('rules.takenBack')
    } catch (error) {
      problem.value = t('rules.notTakenBack', { reason: reasonOf(error) })
    }
    isBusy.value = false
    announce(told.value || problem.value)
  }

  async function takeOneBack({ id, scope }: RuleItem): Promise<void> {
    try {
      await door.takeBack(id, scope === 'session' ? session() : undefined)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
    goneRules.add(id)
    rules.value = rules.value?.filter((rule) => rule.id !== id) ?? null
  }

  return { rules, problem, told, isBusy, load, takeBack }
}
