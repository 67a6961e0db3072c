/** Who may give which role, and change whom: the server decides, and the page offers only what it allows. */
import type { Me } from '@/wire/restTypes'
import type { Person, Role } from './door'

/** The lowest first. */
export const ROLES: readonly Role[] = ['viewer', 'member', 'admin', 'owner']

/** Who administers the installation administers every team. */
function rankOf(me: Me | null): Role | null {
  if (!me) return null
  return me.user.installationAdmin ? 'owner' : me.user.role
}

/** The roles that somebody may give; none if they administer nobody. */
export function rolesToGive(me: Me | null): Role[] {
  const rank = rankOf(me)
  if (rank === 'owner') return [...ROLES]
  return rank === 'admin' ? ROLES.filter((role) => !isAdministering(role)) : []
}

export function mayChange(me: Me | null, { role, installationAdmin }: Pick<Person, 'role' | 'installationAdmin'>): boolean {
  return rolesToGive(me).includes(role) && (!installationAdmin || me?.user.installationAdmin === true)
}

export function isAdministering(role: Role): boolean {
  return role === 'admin' || role === 'owner'
}
