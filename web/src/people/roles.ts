/** Who may give which role, and change whom: the server decides, and the page offers only what it allows. */
import type { Me } from '@/wire/restTypes'
import type { Person, Role } from './door'

/** The lowest first. */
export const ROLES: readonly Role[] = ['viewer', 'approver', 'member', 'admin', 'owner']

/** The roles that somebody may give; none if they administer nobody. */
export function rolesToGive(me: Me | null): Role[] {
  const rights = new Set(me?.user.rights)
  if (!rights.has('people.manage')) return []
  return rights.has('people.manage_admins') ? [...ROLES] : ROLES.filter((role) => !isAdministering(role))
}

export function mayChange(me: Me | null, { role, installationAdmin }: Pick<Person, 'role' | 'installationAdmin'>): boolean {
  return rolesToGive(me).includes(role) && (!installationAdmin || me?.user.installationAdmin === true)
}

export function isAdministering(role: Role): boolean {
  return role === 'admin' || role === 'owner'
}
