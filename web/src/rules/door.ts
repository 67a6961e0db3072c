/** The requests about rules. */
import { onBeforeUnmount, reactive, shallowRef, watch } from 'vue'
import { t } from '@/locales'
import { reasonOr, request, RequestError } from '@/wire/request'
import type { NewRule, RuleGiven, RuleItem, RuleOffer, RulePreview, Simulation } from './types'
import '@/settings/texts.en.json'

export const door = {
  /** In the order in which they count; with a session of mine also its own. */
  rules: (session?: string) => request('get', '/api/rules', { query: { session } }) as Promise<{ rules: RuleItem[] }>,
  give: (rule: NewRule) => request('post', '/api/rules', { body: rule }) as Promise<RuleGiven>,
  takeBack: (id: string, session?: string) => request('delete', '/api/rules/{id}', { path: { id }, query: { session } }) as Promise<undefined>,
  preview: (rule: NewRule) => request('post', '/api/rules/preview', { body: rule }) as Promise<RulePreview>,
  simulate: (rule: NewRule) => request('post', '/api/rules/simulate', { body: rule }) as Promise<Simulation>,
  offers: (id: string, call: string) => request('get', '/api/sessions/{id}/calls/{call}/rules', { path: { id, call } }) as Promise<{ offers: RuleOffer[] }>,
}

/** Rules that are known to be gone, so that no row of theirs offers to take them back. */
export const goneRules = reactive(new Set<string>())

/** Takes a rule back of which only the id is known: one of the session, or one that outlasts it. */
export async function takeBackAnywhere(id: string, session: string | null): Promise<void> {
  try {
    if (session === null || !(await isTaken(id, session))) await door.takeBack(id)
    goneRules.add(id)
  } catch (error) {
    if (isMissing(error)) goneRules.add(id)
    throw error
  }
}

async function isTaken(id: string, session: string): Promise<boolean> {
  try {
    await door.takeBack(id, session)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof RequestError && error.status === 404
}

/** Why something was not done, in the server's words. */
export function reasonOf(error: unknown): string {
  return error instanceof RequestError ? reasonOr(error, t('settings.noAnswer')) : ''
}

// The preview of a rule that is being made: the sentence of the rule as it is chosen now, or none.

/** Nobody reads a sentence for each letter that is typed. */
export const TYPING_MS = 300

interface Previewed {
  /** Exactly what the sentence is about. */
  rule: NewRule
  preview: RulePreview
}

export function usePreview(wanted: () => NewRule | null) {
  const shown = shallowRef<Previewed | null>(null)
  const refusal = shallowRef<unknown>(null)
  const isAsking = shallowRef(false)
  let timer: ReturnType<typeof setTimeout> | undefined
  let turn = 0

  watch(
    () => JSON.stringify(wanted()),
    (_, before) => {
      forget()
      if (wanted() === null) return
      isAsking.value = true
      if (before === undefined || before === 'null') void ask()
      else timer = setTimeout(() => void ask(), TYPING_MS)
    },
    { immediate: true },
  )
  onBeforeUnmount(forget)

  function forget(): void {
    clearTimeout(timer)
    turn += 1
    shown.value = null
    refusal.value = null
    isAsking.value = false
  }

  async function ask(): Promise<void> {
    const rule = wanted()
    if (rule === null) return
    turn += 1
    const mine = turn
    isAsking.value = true
    refusal.value = null
    try {
      const preview = await door.preview(rule)
      if (mine === turn) shown.value = { rule, preview }
    } catch (error) {
      if (mine === turn) refusal.value = error
    }
    if (mine === turn) isAsking.value = false
  }

  return { shown, refusal, isAsking, again: ask }
}
