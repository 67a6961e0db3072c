/** Secrets in a server's entry: what looks like one stands in it as `${secret:NAME}`, its value beside it. Pure. */
import type { ServerConfig } from '@/wire/restTypes'

/** An entry that is being written, with what its references stand for. */
export interface Draft {
  config: ServerConfig
  /** Values by name; an empty one is still to be typed. */
  secrets: Record<string, string>
  /** Variables and headers that the person wants to stand in plain text. */
  plain: string[]
  /** Names that are set at the server already: what is typed elsewhere does not take their place. */
  kept?: string[]
  /** Those of them that are to go with the change. */
  leaving?: string[]
  /** Lines that say nothing yet, by field: they are neither sent nor forgotten. */
  loose?: Partial<Record<Place, string[]>>
}

export const PLACES = ['env', 'containerEnv', 'headers'] as const
export type Place = (typeof PLACES)[number]
/** What the server shows in place of a value. */
export const MASK = '••••'
const LOOKS_SECRET = /key|token|secret|passw(or)?d|passphrase|credential/i
const SECRET_HEADER = /^(proxy-)?authorization$|^cookie$/i
/** The word before a credential in a header. */
const SCHEME = /^((?:bearer|basic|token)\s+)(.+)$/i
const REFERENCE = /\$\{secret:([A-Za-z0-9_]+)\}/g

function isSecret(place: Place, field: string, value: string): boolean {
  if (value === '' || value.includes('${') || value.includes(MASK)) return false
  return LOOKS_SECRET.test(field) || (place === 'headers' && SECRET_HEADER.test(field))
}

/** Moves every value that looks like a secret, and is not wanted plain, behind a reference. */
export function seal(draft: Draft): Draft {
  const secrets = { ...draft.secrets }
  const config = { ...draft.config }
  for (const place of PLACES) {
    const values = config[place]
    if (!values) continue
    config[place] = mapValues(values, (field, value) => {
      if (!isSecret(place, field, value) || draft.plain.includes(field)) return value
      const [, scheme = '', credential = value] = (place === 'headers' ? SCHEME.exec(value) : null) ?? []
      const name = freeName(field, credential, secrets, draft.kept ?? [])
      secrets[name] = credential
      return `${scheme}\${secret:${name}}`
    })
  }
  return { ...draft, config, secrets }
}

/** Puts the value of a secret back into the entry, in plain text. */
export function unseal(draft: Draft, name: string): Draft {
  const { [name]: value = '', ...secrets } = draft.secrets
  const plain = new Set(draft.plain)
  const config = { ...draft.config }
  for (const place of PLACES) {
    const values = config[place]
    if (!values) continue
    config[place] = mapValues(values, (field, text) => {
      if (!text.includes(reference(name))) return text
      plain.add(field)
      return text.replaceAll(reference(name), value)
    })
  }
  return { ...draft, config, secrets, plain: [...plain] }
}

/** Seals a field that stood in plain text. */
export function sealAgain(draft: Draft, field: string): Draft {
  return seal({ ...draft, plain: draft.plain.filter((other) => other !== field) })
}

/** The names that an entry refers to, each once, in order. */
export function references(config: ServerConfig): string[] {
  const texts = [...PLACES.flatMap((place) => Object.values(config[place] ?? {})), config.url ?? '']
  return [...new Set(texts.flatMap((text) => [...text.matchAll(REFERENCE)].map((match) => match[1] ?? '')))]
}

/** Whether the secrets of an entry may go in on the way to hosts: it runs here, and may reach some. */
export function hasHosts({ url, network }: ServerConfig): boolean {
  return url === undefined && Array.isArray(network) && network.length > 0
}

/** The entry with those hosts for a secret; without hosts the program has the secret itself. What nothing refers to goes. */
export function withHosts(config: ServerConfig, name: string, hosts: string[]): ServerConfig {
  const named = references(config)
  const all = Object.entries({ ...config.secretHosts, [name]: hosts })
  const kept = Object.fromEntries(all.filter(([key, list]) => list.length > 0 && named.includes(key)))
  const rest = { ...config }
  delete rest.secretHosts
  return Object.keys(kept).length > 0 ? { ...rest, secretHosts: kept } : rest
}

/** The fields that look like secrets and stand in plain text all the same. */
export function plainSecrets({ config, plain }: Draft): string[] {
  return PLACES.flatMap((place) =>
    Object.entries(config[place] ?? {})
      .filter(([field, value]) => plain.includes(field) && isSecret(place, field, value))
      .map(([field]) => field),
  )
}

/** What goes to the server: values that nothing refers to, or that nobody typed, stay here. */
export function toSend({ config, secrets }: Draft): Record<string, string> {
  const named = references(config)
  return Object.fromEntries(Object.entries(secrets).filter(([name, value]) => value !== '' && named.includes(name)))
}

function reference(name: string): string {
  return `\${secret:${name}}`
}

function mapValues(values: Record<string, string>, change: (field: string, value: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([field, value]) => [field, change(field, value)]))
}

/** A name after the field; the same value keeps one name, another value gets another. */
function freeName(field: string, value: string, taken: Record<string, string>, kept: string[]): string {
  const base = field.toUpperCase().replace(/[^A-Z0-9]+/g, '_').replace(/^_+|_+$/g, '').slice(0, 100) || 'SECRET'
  const isFree = (name: string) =>
    taken[name] === value || (!kept.includes(name) && (taken[name] === undefined || taken[name] === ''))
  let name = base
  for (let n = 2; !isFree(name); n += 1) name = `${base}_${n}`
  return name
}
