/** A stored entry that is being changed: what to send of it, and what stands in the way. Pure. */
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { ServerConfig, ServerItem, ServerPatch } from '@/wire/restTypes'
import { MASK, PLACES, type Draft, type Place } from './secrets'

type Map = Record<string, string>
type Lists = Record<string, string[]>
type Value = ServerConfig[keyof ServerConfig]

export interface FieldProblem {
  field: string
  message: string
}

/** What differs, as a JSON merge patch: `null` removes a member or a name. */
export function patchOf(base: ServerConfig, now: ServerConfig): ServerPatch {
  const fields = new Set([...Object.keys(base), ...Object.keys(now)]) as Set<keyof ServerConfig>
  const patch: Record<string, unknown> = {}
  for (const field of fields) {
    const [then, today] = [base[field], now[field]]
    if (isSame(then, today)) continue
    if (isPlace(field)) patch[field] = patchOfMap(then as Map | undefined, today as Map | undefined)
    else if (field === 'secretHosts') patch[field] = patchOfMap(then as Lists | undefined, today as Lists | undefined)
    else patch[field] = isNothing(today) ? null : today
  }
  return patch as ServerPatch
}

function patchOfMap<T extends string | string[]>(then: Record<string, T> = {}, now: Record<string, T> = {}): Record<string, T | null> {
  const gone = Object.keys(then).filter((name) => !Object.hasOwn(now, name))
  const changed = Object.entries(now).filter(([name, value]) => !Object.hasOwn(then, name) || String(then[name]) !== String(value))
  return Object.fromEntries([...gone.map((name) => [name, null]), ...changed])
}

/** Members that somebody else changed meanwhile: what the server has now differs there, and we did not send it. */
export function changedByOthers(base: ServerConfig, patch: ServerPatch, now: ServerConfig): string[] {
  return Object.entries(patchOf(base, now)).flatMap(([field, theirs]) => {
    if (!isPlace(field)) return Object.hasOwn(patch, field) ? [] : [field]
    const ours = patch[field] ?? {}
    return Object.keys(theirs ?? {}).some((name) => !Object.hasOwn(ours, name)) ? [field] : []
  })
}

const ALWAYS = ['transport', 'description', 'timeout', 'toolPrefix', 'includeTools', 'excludeTools', 'sampling']

/** The members that the form has a field for. */
export function formFields(config: ServerConfig): string[] {
  const transport = transportOf(config)
  if (transport === 'http' || transport === 'sse') return ['url', 'headers', ...ALWAYS]
  const what = transport === 'stdio-docker' ? ['containerImage'] : ['command', 'cwd']
  return [...what, 'args', 'env', 'containerEnv', 'containerMemory', 'containerCpu', 'network', 'secretHosts', ...ALWAYS]
}

/** The members that say where an entry leads, by transport: they go when it is reached otherwise. */
const WAYS = {
  remote: ['url', 'headers'],
  local: ['command', 'args', 'env', 'cwd', 'containerImage', 'containerEnv', 'containerMemory', 'containerCpu', 'workspace', 'network', 'secretHosts'],
} as const

/** The entry by another transport, without what belongs to the old one alone. */
export function withTransport(config: ServerConfig, transport: NonNullable<ServerConfig['transport']>): ServerConfig {
  const isRemote = transport === 'http' || transport === 'sse'
  const foreign: readonly string[] = isRemote ? WAYS.local : [...WAYS.remote, ...(transport === 'stdio' ? ['containerImage', 'containerEnv'] : ['command', 'cwd'])]
  const kept = Object.entries(config).filter(([member]) => !foreign.includes(member))
  return { ...(Object.fromEntries(kept) as ServerConfig), transport }
}

export function transportOf(config: ServerConfig): NonNullable<ServerConfig['transport']> {
  return config.transport ?? (config.url === undefined ? 'stdio' : 'http')
}

/**
 * What is wrong, at its fields; the rest has none in the form. `words` may say something in other words: it is
 * told the member and the name in it.
 */
export function placed(
  problems: FieldProblem[],
  config: ServerConfig,
  words: (member: string, name: string) => string | null = () => null,
): { fields: Record<string, string>; others: string[] } {
  const shown = formFields(config)
  const fields: Record<string, string> = {}
  const others: string[] = []
  const add = (key: string, text: string) => {
    fields[key] = fields[key] === undefined ? text : `${fields[key]} ${text}`
  }
  for (const { field, message } of problems) {
    const path = field.replace(/^config\./, '')
    const [member = '', ...rest] = path.split('.')
    const name = rest.join('.')
    const said = words(member, name)
    if (member === 'name') add('name', message)
    else if (member === 'secrets' && name !== '') add(path, said ?? message)
    else if (member === 'secretHosts' && name !== '') add(`config.${path}`, said ?? message)
    else if (shown.includes(member)) add(`config.${member}`, said ?? (name === '' ? message : `${name}: ${message}`))
    else others.push(said ?? `${path}: ${message}`)
  }
  return { fields, others }
}

/** Lines that say nothing yet, each with its field. */
export function looseLines({ config, loose }: Draft): { field: Place; line: string }[] {
  const shown = formFields(config)
  return PLACES.filter((place) => shown.includes(place)).flatMap((field) => (loose?.[field] ?? []).map((line) => ({ field, line })))
}

/**
 * Masks that would be stored as they read: the server knows what one stands for only where it showed it. `name` is
 * empty for the address.
 */
export function strayMasks(base: ServerConfig, now: ServerConfig): { field: Place | 'url'; name: string }[] {
  const url = now.url?.includes(MASK) && now.url !== base.url ? [{ field: 'url' as const, name: '' }] : []
  const named = PLACES.flatMap((field) =>
    Object.entries(now[field] ?? {})
      .filter(([name, value]) => value.includes(MASK) && base[field]?.[name] !== value)
      .map(([name]) => ({ field, name })),
  )
  return [...url, ...named]
}

/**
 * The secrets that have to go before the change is taken, if nothing else stands in its way and each was typed again
 * or is to go; otherwise `null`.
 */
export function givenAgain(problems: FieldProblem[], typed: Record<string, string>, leaving: string[]): string[] | null {
  const names = problems.map(({ field }) => (field.startsWith('secrets.') ? field.slice('secrets.'.length) : null))
  const isGiven = (name: string | null): name is string => name !== null && (leaving.includes(name) || Boolean(typed[name]))
  return names.length > 0 && names.every(isGiven) ? names : null
}

export function isPlace(field: string): field is Place {
  return (PLACES as readonly string[]).includes(field)
}

/** Absent, or a list or map without anything in it: the server leaves those out. */
function isNothing(value: Value): boolean {
  return value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)
}

function isSame(one: Value, other: Value): boolean {
  return (isNothing(one) && isNothing(other)) || sorted(one) === sorted(other)
}

/** Maps come back in the order of their names. */
function sorted(value: Value): string {
  const isMap = typeof value === 'object' && !Array.isArray(value)
  return JSON.stringify(isMap ? Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)) : value) ?? ''
}

// Conflicts with what somebody else changed in an entry meanwhile; pure.

/** Where an entry's values go: who trusts it, or types a value for it, has looked at these. */
const WHERE = ['transport', 'url', 'command', 'args', 'cwd', 'containerImage']

export interface Conflict {
  field: keyof ServerConfig
  /** In a map: the name whose value is meant. */
  name?: string
  /** Whether it was changed here too; if not, the fields show it as it is now. */
  isOurs: boolean
}

type Values = Record<string, string | null> | null | undefined

/**
 * Lists the fields that a person has to check before the change is sent: fields that both sides changed to different
 * values, and fields that decide where the values go. A masked value looks the same before and after.
 */
export function conflictsOf(base: ServerConfig, patch: ServerPatch, now: ServerConfig): Conflict[] {
  const theirs = patchOf(base, now)
  return (Object.keys(theirs) as (keyof ServerConfig)[]).flatMap((field): Conflict[] => {
    if (isPlace(field)) return names(patch[field], theirs[field]).map((name) => ({ field, name, isOurs: true }))
    const isOurs = Object.hasOwn(patch, field)
    if (isOurs) return JSON.stringify(patch[field]) === JSON.stringify(theirs[field]) ? [] : [{ field, isOurs }]
    return WHERE.includes(field) ? [{ field, isOurs }] : []
  })
}

/** The entry as it is now, with the change on top. */
export function rebase(now: ServerConfig, patch: ServerPatch): ServerConfig {
  const changed = Object.entries(patch).map(([field, change]) => {
    const isNamed = change !== null && isPlace(field)
    return [field, isNamed ? withoutNull({ ...now[field], ...(change as object) }) : change]
  })
  return withoutNull({ ...now, ...Object.fromEntries(changed) })
}

/** The names that both changed, and not to the same value. */
function names(ours: Values, theirs: Values): string[] {
  return Object.keys(theirs ?? {}).filter((name) => Object.hasOwn(ours ?? {}, name) && ours?.[name] !== theirs?.[name])
}

function withoutNull(values: object): object {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
}

// Saves a changed entry: first the entry, then its secrets, so that no secret goes to the old place.

/** Where it stopped. What was done until then is in `Saved`. */
type Step = 'entry' | 'secrets'

export interface Saved {
  /** The entry as the server has it now; `null` while it is the old one. */
  item: ServerItem | null
  /** Secrets that had to go before the change, and whose new value is not stored yet. */
  removed: string[]
  /** Secrets that were stored. */
  stored: string[]
}

export class SaveFailed extends Error {
  constructor(
    readonly step: Step,
    readonly saved: Saved,
    readonly reason: unknown,
  ) {
    super('not saved')
  }
}

/** Somebody else changed what has to be looked at first: nothing was sent. */
export class EditConflict extends Error {
  constructor(
    readonly item: ServerItem,
    readonly conflicts: Conflict[],
  ) {
    super('changed meanwhile')
  }
}

interface Change {
  /** The entry that the change was made of. */
  base: ServerConfig
  patch: ServerPatch
  typed: Record<string, string>
  leaving: string[]
}

/** Rejects with `SaveFailed` only. */
export async function saveEntry(name: string, { base, patch, typed, leaving }: Change): Promise<Saved> {
  const saved: Saved = { item: null, removed: [], stored: [] }
  let step: Step = 'entry'
  try {
    await look()
    if (Object.keys(patch).length > 0) saved.item = await change()
    step = 'secrets'
    for (const [secret, value] of Object.entries(typed)) {
      await rest.setServerSecret(name, secret, value)
      saved.stored.push(secret)
      saved.removed = saved.removed.filter((other) => other !== secret)
    }
    return saved
  } catch (error) {
    throw new SaveFailed(step, saved, error)
  }

  /** The server takes whatever comes last. What comes between this look and the change is still told afterwards. */
  async function look() {
    const now = await rest.server(name)
    // Who may no longer see it hears that from the change itself.
    const found = now.config ? conflictsOf(base, patch, now.config) : []
    if (found.length > 0) throw new EditConflict(now, found)
  }

  /** A refusal that names nothing but secrets is about values that go along: those that came again take their place. */
  async function change(): Promise<ServerItem> {
    try {
      return await rest.changeServer(name, patch)
    } catch (error) {
      const inTheWay = error instanceof RequestError ? givenAgain(error.fields, typed, leaving) : null
      if (!inTheWay) throw error
      for (const secret of inTheWay) {
        await rest.deleteServerSecret(name, secret)
        saved.removed.push(secret)
      }
      return rest.changeServer(name, patch)
    }
  }
}

// Settings that are written one a line, and back.

/** `NAME<separator>value` a line; lines without the separator are problems, not lost. */
export function pairs(text: string, separator: '=' | ':'): { pairs: Record<string, string>; wrong: string[] } {
  const found: Record<string, string> = {}
  const wrong: string[] = []
  for (const line of lines(text)) {
    const at = line.indexOf(separator)
    if (at <= 0) wrong.push(line)
    else found[line.slice(0, at).trim()] = separator === ':' ? line.slice(at + 1).trim() : line.slice(at + 1)
  }
  return { pairs: found, wrong }
}

export function fromPairs(values: Record<string, string> | undefined, separator: '=' | ':'): string {
  const glue = separator === ':' ? ': ' : '='
  return Object.entries(values ?? {})
    .map(([name, value]) => `${name}${glue}${value}`)
    .join('\n')
}

/** Lines that say something. */
export function lines(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '')
}

/** Arguments one a line; one that a line cannot hold (empty, several lines) stands in double quotes, as in JSON. */
export function fromWords(words: string[] | undefined): string {
  return (words ?? []).map((word) => (word.trim() === '' || /[\n\r]/.test(word) || quoted(word) !== null ? JSON.stringify(word) : word)).join('\n')
}

export function toWords(text: string): string[] {
  return lines(text).map((line) => quoted(line) ?? line)
}

function quoted(line: string): string | null {
  if (!line.startsWith('"')) return null
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}
