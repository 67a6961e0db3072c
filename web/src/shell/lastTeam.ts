/** The team of whoever signed in last in this browser, so that they need not name it again. */
import { recall, remember } from '@/browser/storage'
import type { Me } from '@/wire/restTypes'

/** The team of those who name none. */
const FIRST = 'default'

/** Empty if it need not be named. */
export function lastTeam(): string {
  return recall('team') ?? ''
}

export function noteTeam({ tenant }: Me): void {
  remember('team', tenant.name === FIRST ? null : tenant.name)
}
