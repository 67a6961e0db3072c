/** Which parts of the arguments are drawn in which way. */
import { asObject } from '@/wire/json'
import type { JsonObject } from '@/wire/types'
import { commandKeyOf, describeCall, pathKeyOf } from './describe'

export interface ArgumentRow {
  key: string
  title?: string
  text: string
  /** Said beside the value, so that the number 5 and the text "5" differ; null for text. */
  type: 'number' | 'boolean' | 'null' | 'list' | 'object' | null
}

export interface Replacement {
  before: string
  after: string
}

export type Thing =
  | { kind: 'content'; key: string; text: string }
  | { kind: 'replacements'; keys: string[]; replacements: Replacement[] }
  | { kind: 'command'; key: string; text: string }
  | { kind: 'rows' }

const CONTENT_KEYS = ['content', 'contents', 'text', 'file_text']
const REPLACEMENT_KEYS: readonly (readonly [string, string])[] = [
  ['old_string', 'new_string'],
  ['oldText', 'newText'],
  ['old_text', 'new_text'],
  ['old_str', 'new_str'],
]

/** The thing itself: what a person has to judge first. */
export function thingOf(name: string, args: JsonObject): Thing {
  const { verb } = describeCall({ name, args })
  const command = commandKeyOf(args)
  if (verb === 'run' && command !== undefined) return { kind: 'command', key: command, text: String(args[command]) }
  const content = CONTENT_KEYS.find((key) => typeof args[key] === 'string')
  if (verb === 'write' && content !== undefined) return { kind: 'content', key: content, text: String(args[content]) }
  return (verb === 'edit' ? replacementsOf(args) : null) ?? { kind: 'rows' }
}

/** Every argument that the thing itself does not show, in the order of the schema. */
export function rowsOf(name: string, args: JsonObject, schema: JsonObject = {}): ArgumentRow[] {
  const thing = thingOf(name, args)
  const shown = thing.kind === 'replacements' ? thing.keys : thing.kind === 'rows' ? [] : [thing.key]
  const properties = asObject(schema.properties) ?? {}
  const order = Object.keys(properties)
  const path = pathKeyOf(args)
  const rank = (key: string) => (key === path ? -1 : order.includes(key) ? order.indexOf(key) : order.length)
  return Object.keys(args)
    .filter((key) => !shown.includes(key))
    .sort((left, right) => rank(left) - rank(right))
    .map((key) => rowOf(key, args[key], Object.hasOwn(properties, key) ? asObject(properties[key]) : null))
}

function rowOf(key: string, value: unknown, property: JsonObject | null): ArgumentRow {
  const title = typeof property?.title === 'string' && property.title !== key ? property.title : undefined
  if (typeof value === 'string') return { key, title, text: value, type: null }
  if (value === null) return { key, title, text: 'null', type: 'null' }
  if (typeof value === 'number' || typeof value === 'boolean') return { key, title, text: String(value), type: typeof value as 'number' | 'boolean' }
  return { key, title, text: JSON.stringify(value, null, 2), type: Array.isArray(value) ? 'list' : 'object' }
}

function replacementsOf(args: JsonObject): Thing | null {
  const single = replacementOf(args)
  if (single !== null) return { kind: 'replacements', keys: [...single.keys], replacements: [single.replacement] }
  if (!Array.isArray(args.edits) || args.edits.length === 0) return null
  const replacements = args.edits.map((edit) => {
    const object = asObject(edit)
    const found = object === null ? null : replacementOf(object)
    // Anything beside the two texts has to be seen as well: then plain rows are drawn.
    return found !== null && object !== null && Object.keys(object).length === 2 ? found.replacement : null
  })
  return replacements.every((replacement) => replacement !== null) ? { kind: 'replacements', keys: ['edits'], replacements } : null
}

function replacementOf(object: JsonObject): { keys: readonly [string, string]; replacement: Replacement } | null {
  for (const keys of REPLACEMENT_KEYS) {
    const [before, after] = [object[keys[0]], object[keys[1]]]
    if (typeof before === 'string' && typeof after === 'string') return { keys, replacement: { before, after } }
  }
  return null
}
