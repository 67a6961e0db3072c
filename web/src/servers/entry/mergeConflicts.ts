/** What somebody else did to an entry while it was changed here. Pure. */
import type { ServerConfig, ServerPatch } from '@/wire/restTypes'
import { isPlace, patchOf } from './entryPatch'

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
 * What has to be looked at before the change is sent: what both changed, and not to the same, and where the values
 * go. What a mask hides looks the same before and after.
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
