/** The rights, as the page names them. */
import { t } from '@/locales'
import type { Right } from './door'
import './texts.en.json'

/** In the order in which they are offered. */
export const RIGHTS: readonly Right[] = [
  'people.manage',
  'people.manage_admins',
  'keys.manage',
  'roles.manage',
  'groups.manage',
  'rules.manage',
  'budgets.manage',
  'servers.manage',
  'providers.manage',
  'models.manage',
  'models.test',
  'skills.manage',
  'assistants.manage',
  'sharing.manage',
  'webhooks.manage',
  'audit.read',
  'usage.read',
  'network.open',
  'sessions.read_content',
]

export function nameOf(right: Right): string {
  const key = right.replace('.', '_')
  return t(`roles.right.${key}`)
}

export function namesOf(rights: readonly Right[]): string {
  return rights.length === 0 ? t('roles.noRights') : rights.map(nameOf).join(' · ')
}
