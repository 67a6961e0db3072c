/** Where signing in leads: a page of ours, or what somebody shared, which is no page of this program but of the server. */
import { address } from '@/wire/base'

export type WayBack = { page: string } | { leave: string }

/** `wanted` is from the address, so anybody may have written it. It never leads to another site. */
export function wayBack(wanted: unknown): WayBack {
  if (typeof wanted !== 'string') return { page: '/s/new' }
  const shared = /^\/(shared\/\w+)$/.exec(wanted)?.[1]
  if (shared) return { leave: address(shared) }
  // `//host` would lead away, and to some browsers `\` is the same as `/`.
  return { page: /^\/(?![/\\])/.test(wanted) ? wanted : '/s/new' }
}
