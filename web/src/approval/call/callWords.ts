/** What a call is, where it runs and how long it waits, in the words that card, tray and record share. */
import { t } from '@/locales'
import { money } from '@/locales/format'
import { fileText } from '@/text/fileFacts'
import { byteCount, firstLineOf, inOneLine, shownLineCount } from '@/text/shorten'
import { visibleHost, visibleText } from '@/text/hiddenCharacters'
import type { CallReview, JsonObject, Person, QueueCall, RunsIn } from '@/wire/types'
import { describeCall, headingKeys, thingOf, type Thing } from './describe'

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
  if (seconds < 60) return t('unit.s', { n: seconds })
  if (seconds < 3_600) return t('unit.min', { n: Math.floor(seconds / 60) })
  return seconds < 86_400 ? t('unit.h', { n: Math.floor(seconds / 3_600) }) : t('unit.days', { n: Math.floor(seconds / 86_400) })
}

// The summary of a call beside its heading: the command, the size, or else the arguments.

/** Shown first, as they say most. */
const SUMMARY_KEYS = ['path', 'url', 'uri', 'query', 'q', 'title', 'subject', 'name', 'to', 'id']
const REPLACEMENT_CHARACTERS = 48

export function summaryOf(call: Pick<QueueCall, 'name' | 'args' | 'file'>): string {
  const args = call.args ?? {}
  const thing = thingOf(call.name, args)
  // The rest of a command's arguments is on the card; the command is what one has to see of it.
  if (thing.kind === 'command') return firstLineOf(thing.text)
  const said = [...headingKeys({ name: call.name, args }), ...keysOf(thing)]
  const file = call.file === undefined ? '' : fileText(call.file, 'summary')
  return [file, ofThing(thing), asText(args, said)].filter((part) => part !== '').join(' · ')
}

function keysOf(thing: Thing): string[] {
  if (thing.kind === 'rows') return []
  return thing.kind === 'replacements' ? thing.keys : [thing.key]
}

function ofThing(thing: Thing): string {
  if (thing.kind === 'content') return t('approval.size', { lines: shownLineCount(thing.text), bytes: byteCount(thing.text) })
  if (thing.kind !== 'replacements') return ''
  const [first, ...others] = thing.replacements
  if (first === undefined) return ''
  const change = t('approval.replaces', { before: firstLineOf(first.before, REPLACEMENT_CHARACTERS), after: firstLineOf(first.after, REPLACEMENT_CHARACTERS) })
  return others.length === 0 ? change : t('approval.morePlaces', { change, n: others.length })
}

/** Values as JSON, so that none can pretend to be two. */
function asText(args: JsonObject, said: readonly string[]): string {
  const rank = (key: string) => (SUMMARY_KEYS.includes(key) ? SUMMARY_KEYS.indexOf(key) : SUMMARY_KEYS.length)
  const parts = Object.keys(args)
    .filter((key) => !said.includes(key))
    .sort((left, right) => rank(left) - rank(right))
    .map((key) => `${key}: ${JSON.stringify(args[key])}`)
  return inOneLine(parts.join(', '))
}

// The outcome of a decided call.

/** `waiting`: how many calls it still waits for. */
export function outcomeOf(call: QueueCall, me: string | undefined, waiting: number): string {
  const isMe = call.decidedBy !== undefined && call.decidedBy.id === me
  const name = visibleText(call.decidedBy?.name ?? '', { oneLine: true })
  const who = isMe ? 'me' : 'other'
  if (call.status === 'approved') return t('approval.outcome.approved', { who, name, waiting })
  if (call.status !== 'rejected') return t('approval.outcome.decided', { name })
  const reason = visibleText(call.reason ?? '', { oneLine: true })
  return reason === '' ? t('approval.outcome.rejected', { who, name }) : t('approval.outcome.rejectedBecause', { who, name, reason })
}

// The person who changed the arguments of a call.

/** "you", the name of somebody else, or "somebody" where nobody knows. */
export function editorWords(editor: Person | undefined, me: string | undefined): string {
  if (editor === undefined) return t('approval.editor', { who: 'nobody', name: '' })
  return t('approval.editor', { who: editor.id === me ? 'me' : 'other', name: visibleText(editor.name, { oneLine: true }) })
}

/** Whether somebody else changed them than whoever decided. */
export function isOther(editor: Person | undefined, decider: Person): boolean {
  return editor !== undefined && editor.id !== decider.id
}

// The review of a call by a model, and its cost.

/** `It only lists files. · $0.00030`; an unknown price is not said. */
export function reviewWords({ reason, costUsd }: CallReview): string {
  const said = visibleText(reason ?? '', { oneLine: true })
  return costUsd === undefined ? said : `${said} · ${money(costUsd)}`
}
