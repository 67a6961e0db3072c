/** What a person asked for and did not get, in words; the page says it in one place. */
import { i18n } from '@/locales'
import { count } from '@/locales/format'
import type { CommandError } from '@/wire/link'

export type Action = 'decide' | 'settle' | 'stop' | 'stopCall' | 'withdraw' | 'retry' | 'rename' | 'older' | 'choose' | 'reset' | 'fork' | 'left'

export interface Failure {
  action: Action
  error: CommandError
  /** The title of the session that was left; only for `left`. */
  title?: string
}

/** The server's limit of a message or a reason, in bytes. */
export const MAX_TEXT_BYTES = 256 * 1024

export function failureWords({ action, error, title }: Failure): string {
  const { t, te } = i18n.global
  const decision = `decision.${error.code}`
  if (action === 'decide') return te(decision) ? t(decision) : t('decision.other', { reason: reasonOf(error) })
  return t(`told.${action}`, { reason: reasonOf(error), title: title ?? t('session.untitled') })
}

/** Ours for what the page answered itself, else the server's own words. */
export function reasonOf({ code, message }: CommandError): string {
  const { t, te } = i18n.global
  const key = `because.${code}`
  return te(key) ? t(key, { most: count(MAX_TEXT_BYTES) }) : message
}
