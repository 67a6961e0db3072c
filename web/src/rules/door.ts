/** The requests about rules. */
import { reactive } from 'vue'
import { t } from '@/locales'
import { reasonOr, request, RequestError } from '@/wire/request'
import type { NewRule, RuleGiven, RuleItem, RuleOffer, RulePreview, Simulation } from './types'

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
