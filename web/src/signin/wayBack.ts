/** The place that a person goes to after signing in: a page of this program, or a shared session, which the server draws. */
import { address } from '@/wire/base'

export type WayBack = { page: string } | { leave: string }

/** What the server takes as a path of this page. */
const SENDABLE = /^[\x21-\x7e]{1,512}$/

/** `wanted` is from the address, so anybody may have written it. It never leads to another site. */
export function wayBack(wanted: unknown): WayBack {
  if (typeof wanted !== 'string') return { page: '/s/new' }
  const shared = /^\/(shared\/\w+)$/.exec(wanted)?.[1]
  if (shared) return { leave: address(shared) }
  // `//host` would lead away, and to some browsers `\` is the same as `/`.
  return { page: /^\/(?![/\\])/.test(wanted) ? wanted : '/s/new' }
}

/** The same as a path that goes round by a provider. */
export function returnPath(wanted: unknown): string {
  const isOurs = typeof wanted === 'string' && /^\/(?![/\\])[^\\]*$/.test(wanted)
  return isOurs && SENDABLE.test(wanted) ? wanted : '/s/new'
}
