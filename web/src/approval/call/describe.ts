/** Says in a verb and an object what a call would do, from its name and arguments only. */

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
