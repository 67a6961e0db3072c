/** Why a turn failed, in words, and what a person can do about it in place. */
import { i18n } from '@/locales'
import { isSetting, type Entry } from '@/session/conversation/conversation'

export type Remedy = 'key' | 'changeKey' | 'model' | 'context' | 'budget'

const REMEDIES: Readonly<Record<string, readonly Remedy[]>> = {
  missing_api_key: ['key', 'model'],
  provider_rejected: ['changeKey', 'model'],
  context_overflow: ['model', 'context'],
  max_iterations: ['model', 'context'],
  budget_exhausted: ['budget', 'model'],
}
/** Asked again, these go on: there are new requests to spend, or a key was added elsewhere meanwhile. */
const WORTH_ANOTHER: ReadonlySet<string> = new Set(['max_iterations', 'missing_api_key'])

export function turnFailureWords(code: string): string {
  const { t, te } = i18n.global
  const key = `failure.${code}`
  return te(key) ? t(key) : t('failure.other')
}

export function remediesOf(code: string): readonly Remedy[] {
  return REMEDIES[code] ?? []
}

/** Whether a failed turn is still the newest thing, and whether asking again may end otherwise. */
export function prospectOf(key: string, entries: readonly Entry[]): { isLast: boolean; mayRetry: boolean } {
  const at = entries.findIndex((entry) => entry.key === key)
  const failed = entries[at]
  const later = at < 0 ? [] : entries.slice(at + 1)
  const isLast = at >= 0 && later.every((entry) => entry.kind === 'note' && isSetting(entry.note))
  if (!isLast || failed?.kind !== 'note' || failed.note.what !== 'failed') return { isLast: false, mayRetry: false }
  const { retryable, code } = failed.note.error
  return { isLast, mayRetry: retryable || WORTH_ANOTHER.has(code) || later.length > 0 }
}
