/** A time as far back as it is: "5 minutes ago", "yesterday", and from a month on its day. */
import { locale, t } from '@/locales'
import { date } from '@/locales/format'
import './texts.en.json'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** The server notes who is here every five minutes. */
const HERE_MS = 6 * MINUTE_MS
const MONTH_MS = 30 * DAY_MS

export function ago(at: string, now = Date.now()): string {
  const past = now - new Date(at).getTime()
  if (past < HERE_MS) return t('people.justNow')
  if (past >= MONTH_MS) return date(at)
  const words = new Intl.RelativeTimeFormat(locale(), { numeric: 'auto' })
  if (past < HOUR_MS) return words.format(-Math.floor(past / MINUTE_MS), 'minute')
  if (past < DAY_MS) return words.format(-Math.floor(past / HOUR_MS), 'hour')
  return words.format(-Math.floor(past / DAY_MS), 'day')
}
