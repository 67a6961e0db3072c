/** What tells one call from the next, in the row beside its heading: the command, the size, else the arguments. */
import { t } from '@/locales'
import { byteCount, shownLineCount } from '@/text/foldMiddle'
import { firstLineOf, inOneLine } from '@/text/oneLine'
import type { JsonObject, QueueCall } from '@/wire/types'
import { thingOf, type Thing } from './argumentRows'
import { headingKeys } from './describe'
import { fileText } from '@/text/fileFacts'

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
