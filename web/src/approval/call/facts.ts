/** The sentences about a call that the card, the tray and the ledger row share. */
import { locale, t } from '@/locales'
import { dateTime } from '@/locales/format'
import { visibleHost } from '@/text/hiddenCharacters'
import { inOneLine } from '@/text/oneLine'
import type { QueueCall, RunsIn } from '@/wire/types'
import { changesOneFile, describeCall } from './describe'
import { fileText } from './fileFacts'
import { changesExisting } from './overwrites'
import { hasUnsafeInteger } from './unsafeIntegers'

export type CueKind = 'drift' | 'destructive' | 'leaves' | 'first' | 'file'

export interface Cue {
  kind: CueKind
  text: string
}

const MAX_CUES = 4

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

/** Only true ones, at most four, gravest first. */
export function cuesOf(call: QueueCall): Cue[] {
  const cues: (CueKind | false)[] = [
    isDrifted(call) && 'drift',
    isCalledDestructive(call) && (leavesSandbox(call) || changesExisting(call)) && 'destructive',
    leavesSandbox(call) && 'leaves',
    call.firstUse && 'first',
    changesOneFile({ ...call, args: call.args ?? {} }) && 'file',
  ]
  return cues
    .filter((kind): kind is CueKind => kind !== false)
    .slice(0, MAX_CUES)
    .map((kind) => ({ kind, text: textOf(kind, call) }))
}

function textOf(kind: CueKind, call: QueueCall): string {
  if (kind === 'file' && call.file !== undefined) return fileText(call.file, 'cue')
  return t(`approval.cue.${kind}`, { when: call.drift ? dateTime(call.drift.since) : '' })
}

/** Such a call is never part of an approval of all. */
export function needsItsOwnLook(call: QueueCall): boolean {
  return isDrifted(call) || (call.argsText === undefined && hasUnsafeInteger(call.args)) || (leavesSandbox(call) && isCalledDestructive(call))
}

function isDrifted(call: QueueCall): boolean {
  return call.drift !== undefined
}

function isCalledDestructive(call: QueueCall): boolean {
  return call.annotations?.destructiveHint === true
}

function leavesSandbox(call: QueueCall): boolean {
  return call.runsIn !== undefined && call.runsIn.kind !== 'sandbox'
}
