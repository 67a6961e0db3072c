/** Numbers, money and times as people read them. Everything goes through `Intl`. */
import { locale, t } from '.'
import { perLocale } from './messages'

const counts = perLocale((locale) => new Intl.NumberFormat(locale))
const clocks = perLocale((locale) => new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' }))
const dates = perLocale((locale) => new Intl.DateTimeFormat(locale, { dateStyle: 'medium' }))
const minutes = perLocale((locale) => new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short' }))
const dateTimes = perLocale((locale) => new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'medium' }))

/** The person's own region when it speaks our language, so that clocks and dates look as usual. */
function region(): string {
  const language = locale().split('-')[0] ?? 'en'
  return navigator.languages?.find((candidate) => candidate.split('-')[0] === language) ?? locale()
}

/** USD with at least two significant digits; an unknown price is said, never shown as zero. */
export function money(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return t('unit.priceUnknown')
  const isSmall = Math.abs(usd) < 1 && usd !== 0
  return new Intl.NumberFormat(locale(), {
    style: 'currency',
    currency: 'USD',
    ...(isSmall ? { minimumSignificantDigits: 2, maximumSignificantDigits: 2 } : {}),
  }).format(usd)
}

export function count(value: number): string {
  return counts(locale()).format(value)
}

export function shortCount(value: number): string {
  return new Intl.NumberFormat(locale(), { notation: 'compact', maximumFractionDigits: 1 }).format(value)
}

export function duration(ms: number): string {
  if (ms < 1000) return t('unit.ms', { n: Math.round(ms) })
  const seconds = ms / 1000
  if (seconds < 10) return t('unit.s', { n: decimal(seconds) })
  if (seconds < 60) return t('unit.s', { n: Math.round(seconds) })
  const minutes = Math.floor(seconds / 60)
  return t('unit.minS', { min: minutes, s: Math.round(seconds - minutes * 60) })
}

export function clock(at: string): string {
  return clocks(region()).format(new Date(at))
}

export function dateTime(at: string): string {
  return dateTimes(region()).format(new Date(at))
}

/** A time that is meant to the minute. */
export function dateMinute(at: string): string {
  return minutes(region()).format(new Date(at))
}

/** The day on which something happened, here. */
export function date(at: string): string {
  return dates(region()).format(new Date(at))
}

/** A day of the year that is meant, whatever the clock says here. */
export function day(at: Date): string {
  return new Intl.DateTimeFormat(region(), { day: 'numeric', month: 'long', timeZone: 'UTC' }).format(at)
}

/** A day that is written like `2026-11-25`, with its year. */
export function utcDay(at: string): string {
  const time = new Date(at)
  return Number.isNaN(time.getTime()) ? at : new Intl.DateTimeFormat(region(), { dateStyle: 'medium', timeZone: 'UTC' }).format(time)
}

/** Short things side by side: "5 done, 1 exit 3". */
export function listed(parts: string[]): string {
  return new Intl.ListFormat(locale(), { type: 'unit', style: 'short' }).format(parts)
}

/** A size in the unit that fits: 12 bytes, 1.5 kB, 3.1 MB. */
export function byteSize(bytes: number): string {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), BYTE_UNITS.length - 1)
  // What is rounded up to a thousand has the next unit.
  const isFull = power > 0 && power < BYTE_UNITS.length - 1 && bytes / 1000 ** power >= 999.95
  const index = isFull ? power + 1 : power
  return new Intl.NumberFormat(locale(), { style: 'unit', unit: BYTE_UNITS[index], unitDisplay: index === 0 ? 'long' : 'short', maximumFractionDigits: 1 }).format(bytes / 1000 ** index)
}

const BYTE_UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte']

function decimal(value: number): string {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 }).format(value)
}
