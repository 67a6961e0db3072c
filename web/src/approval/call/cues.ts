/** What a person should look at in this call, and whether it needs a look of its own. */
import { t } from '@/locales'
import { dateTime } from '@/locales/format'
import { fileText } from '@/text/fileFacts'
import { hasUnsafeInteger } from '@/wire/json'
import type { QueueCall } from '@/wire/types'
import { changesOneFile, describeCall } from './describe'
import '@/approval/texts.en.json'

export type CueKind = 'drift' | 'destructive' | 'leaves' | 'first' | 'file'

export interface Cue {
  kind: CueKind
  text: string
  /** It is read before what the call is about. */
  isGrave: boolean
}

const GRAVE: ReadonlySet<CueKind> = new Set<CueKind>(['drift', 'destructive', 'leaves'])

const MAX_CUES = 4

/** Only true ones, at most four, gravest first. */
export function cuesOf(call: QueueCall): Cue[] {
  const cues: (CueKind | false)[] = [
    isDrifted(call) && 'drift',
    isCalledDestructive(call) && (isOutside(call) || changesExisting(call)) && 'destructive',
    reachesOthers(call) && 'leaves',
    call.firstUse && 'first',
    changesOneFile({ ...call, args: call.args ?? {} }) && 'file',
  ]
  return cues
    .filter((kind): kind is CueKind => kind !== false)
    .slice(0, MAX_CUES)
    .map((kind) => ({ kind, text: textOf(kind, call), isGrave: GRAVE.has(kind) }))
}

function textOf(kind: CueKind, call: QueueCall): string {
  if (kind === 'file' && call.file !== undefined) return fileText(call.file, 'cue')
  return t(`approval.cue.${kind}`, { when: call.drift ? dateTime(call.drift.since) : '' })
}

/** Such a call is never part of an approval of all. */
export function needsItsOwnLook(call: QueueCall): boolean {
  return isDrifted(call) || (call.argsText === undefined && hasUnsafeInteger(call.args)) || (isOutside(call) && isCalledDestructive(call))
}

function isDrifted(call: QueueCall): boolean {
  return call.drift !== undefined
}

function isCalledDestructive(call: QueueCall): boolean {
  return call.annotations?.destructiveHint === true
}

/** It runs elsewhere than in the session's own sandbox, where nobody else's things are. */
function isOutside({ runsIn }: QueueCall): boolean {
  return runsIn !== undefined && runsIn.kind !== 'sandbox'
}

/** A container of its own without a network is as closed as the sandbox. */
function reachesOthers({ runsIn }: QueueCall): boolean {
  return runsIn !== undefined && (runsIn.kind === 'remote' || (runsIn.kind !== 'sandbox' && runsIn.hosts.length > 0))
}

// Calls that change existing things, as far as that is known before they run.

/**
 * A hint of the server is about the tool, not about this call: a command says itself what it does, reading changes
 * nothing, and a file that is not there is only made. Where nothing more is known, the server's word stands.
 */
function changesExisting(call: QueueCall): boolean {
  const { verb } = describeCall({ ...call, args: call.args ?? {} })
  if (verb === 'write' && call.file !== undefined) return call.file.exists
  return verb !== 'run' && verb !== 'read' && verb !== 'list' && verb !== 'listAll'
}
