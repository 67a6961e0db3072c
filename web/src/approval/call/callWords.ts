/** What a call is, where it runs and how long it waits, in the words that card, tray and record share. */
import { locale, t } from '@/locales'
import { visibleHost } from '@/text/hiddenCharacters'
import { inOneLine } from '@/text/oneLine'
import type { RunsIn } from '@/wire/types'
import { describeCall } from './describe'

interface Named {
  name: string
  args?: Record<string, unknown>
  title?: string
}

/** Verb and object in one sentence; a long object is folded in the middle, it stands whole in the arguments. */
export function headingOf(call: Named): string {
  const { verb, object, target } = describeCall({ ...call, args: call.args ?? {} })
  return t(`approval.verb.${verb}`, { object: inOneLine(object), target: inOneLine(target ?? '') })
}

export function runsInText(runsIn: RunsIn): string {
  const hosts = runsIn.hosts.map(visibleHost).join(', ')
  if (runsIn.kind === 'remote') return t('approval.runsIn.remote', { hosts })
  const reach = runsIn.hosts.length === 0 ? 'Closed' : 'Open'
  return t(`approval.runsIn.${runsIn.kind}${reach}`, { hosts })
}

/** In one unit, so that a waiting card does not tick. */
export function coarseDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [unit, value]: [string, number] =
    seconds < 60 ? ['second', seconds] : seconds < 3_600 ? ['minute', seconds / 60] : seconds < 86_400 ? ['hour', seconds / 3_600] : ['day', seconds / 86_400]
  return new Intl.NumberFormat(locale(), { style: 'unit', unit, unitDisplay: unit === 'day' ? 'long' : 'short', maximumFractionDigits: 0, roundingMode: 'floor' } as Intl.NumberFormatOptions).format(value)
}
