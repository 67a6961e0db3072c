/** Says in a verb and an object what a call would do, from its name and arguments only. */
import type { GlyphState } from '@/ui/StateGlyph.vue'
import { asObject } from '@/wire/json'
import type { CallStatus, CallView, JsonObject } from '@/wire/types'

export type Verb = 'write' | 'edit' | 'delete' | 'move' | 'read' | 'list' | 'listAll' | 'run' | 'named'

export interface Description {
  /** Locale key below `approval.verb`; the sentence is made there, never glued. */
  verb: Verb
  object: string
  /** Where a move goes. */
  target?: string
}

interface Described {
  name: string
  args: Record<string, unknown>
  title?: string
}

const VERBS = new Map<string, Verb>([
  ['write_file', 'write'],
  ['create_file', 'write'],
  ['save_file', 'write'],
  ['edit_file', 'edit'],
  ['replace_in_file', 'edit'],
  ['str_replace', 'edit'],
  ['delete_file', 'delete'],
  ['remove_file', 'delete'],
  ['move_file', 'move'],
  ['rename_file', 'move'],
  ['read_file', 'read'],
  ['read_text_file', 'read'],
  ['view_file', 'read'],
  ['list_files', 'list'],
  ['list_directory', 'list'],
  ['list_dir', 'list'],
  ['execute_command', 'run'],
  ['run_command', 'run'],
  ['shell', 'run'],
  ['bash', 'run'],
])

/** Ways to say the workspace itself. */
const WHOLE_WORKSPACE: ReadonlySet<string> = new Set(['', '.', './', '/workspace', '/workspace/'])
const PATH_KEYS = ['path', 'file_path', 'filePath', 'filename', 'file', 'directory', 'dir']
const COMMAND_KEYS = ['command', 'cmd', 'script']
const SOURCE_KEYS = ['source', 'from', 'old_path', 'oldPath']
const TARGET_KEYS = ['destination', 'to', 'new_path', 'newPath']

export function describeCall(call: Described): Description {
  const verb = VERBS.get(localName(call.name))
  switch (verb) {
    case 'run':
      return commandOf(call.args) === undefined ? named(call) : { verb, object: '' }
    case 'move': {
      const source = textOf(call.args, SOURCE_KEYS)
      const target = textOf(call.args, TARGET_KEYS)
      return source === undefined || target === undefined ? named(call) : { verb, object: source, target }
    }
    case 'list': {
      const path = pathOf(call.args)
      return path === undefined || WHOLE_WORKSPACE.has(path) ? { verb: 'listAll', object: '' } : { verb, object: path }
    }
    case undefined:
      return named(call)
    default: {
      const path = pathOf(call.args)
      return path === undefined || path === '' ? named(call) : { verb, object: path }
    }
  }
}

/** Whether the call changes exactly one file of the workspace. */
export function changesOneFile(call: Described): boolean {
  return ['write', 'edit', 'delete', 'move'].includes(describeCall(call).verb)
}

/** The tool's own name without the prefix of its server. */
export function localName(name: string): string {
  return name.split(/\.|\/|:|__/).at(-1) ?? name
}

export function pathOf(args: Record<string, unknown>): string | undefined {
  return textOf(args, PATH_KEYS)
}

export function pathKeyOf(args: Record<string, unknown>): string | undefined {
  return PATH_KEYS.find((key) => typeof args[key] === 'string')
}

/** The arguments that the heading already says. */
export function headingKeys(call: Described): string[] {
  const { verb } = describeCall(call)
  if (verb === 'named' || verb === 'run') return []
  const groups = verb === 'move' ? [SOURCE_KEYS, TARGET_KEYS] : [PATH_KEYS]
  return groups.flatMap((keys) => keys.find((key) => typeof call.args[key] === 'string') ?? [])
}

export function commandKeyOf(args: Record<string, unknown>): string | undefined {
  return COMMAND_KEYS.find((key) => typeof args[key] === 'string')
}

export function commandOf(args: Record<string, unknown>): string | undefined {
  return textOf(args, COMMAND_KEYS)
}

/** The arguments in one line: the thing itself when it is known, else compact JSON. */
export function oneLineArguments(call: Described): string {
  const { verb, object } = describeCall(call)
  if (verb === 'run') return commandOf(call.args) ?? ''
  if (verb !== 'named' && object !== '') return object
  return Object.keys(call.args).length === 0 ? '' : JSON.stringify(call.args)
}

function named(call: Described): Description {
  const title = call.title?.trim()
  return { verb: 'named', object: title === undefined || title === '' ? call.name : title }
}

function textOf(args: Record<string, unknown>, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = args[key]
    if (typeof value === 'string') return value
  }
  return undefined
}

// The parts of the arguments: one that stands for the call, and rows for the others.

interface ArgumentRow {
  key: string
  title?: string
  text: string
  /** Said beside the value, so that the number 5 and the text "5" differ; null for text. */
  type: 'number' | 'boolean' | 'null' | 'list' | 'object' | null
}

interface Replacement {
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

// The drawing for each state of a call.

const GLYPHS: Readonly<Record<CallStatus, GlyphState>> = {
  pending: 'waits',
  approved: 'approved',
  rejected: 'refused',
  executing: 'running',
  completed: 'done',
  failed: 'failed',
  cancelled: 'stopped',
  unknown: 'unknown',
}

/** The code of a command that ran to its end and says that it did not go well; null for everything else. */
export function exitCodeOf({ status, exitCode }: Pick<CallView, 'status' | 'exitCode'>): number | null {
  return status === 'completed' && exitCode !== undefined && exitCode !== 0 ? exitCode : null
}

export function glyphOf(status: CallStatus): GlyphState {
  return GLYPHS[status]
}
