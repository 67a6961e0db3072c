/** A stored entry that is being changed: what to send of it, and what stands in the way. Pure. */
import type { ServerConfig, ServerPatch } from '@/wire/restTypes'
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
