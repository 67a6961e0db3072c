/** The sections of the settings, each with its address. */
import type { Me, Right } from '@/wire/restTypes'
import './texts.en.json'

export type SectionId = 'profile' | 'appearance' | 'notifications' | 'keyboard' | 'assistants' | 'skills' | 'rules' | 'keys' | 'sharing' | 'readings' | 'people' | 'roles' | 'tenants' | 'about'

export interface Section {
  id: SectionId
  /** The key of its name. */
  name: string
  /** The keys of what is found in it. */
  holds: readonly string[]
  isFor: (me: Me | null) => boolean
  /** Its address where that is not `/settings/<id>`. */
  address?: string
}

const forEverybody = () => true
const forPeople = (me: Me | null) => me !== null
/** For everybody who has one of the rights. */
const forRight = (...rights: Right[]) => (me: Me | null) => rights.some((right) => new Set(me?.user.rights).has(right))

export const SETTINGS: readonly Section[] = [
  { id: 'profile', name: 'settings.section.profile', holds: ['settings.find.password', 'settings.find.passkeys', 'settings.find.signIns', 'settings.signOut'], isFor: forPeople },
  { id: 'appearance', name: 'settings.appearance', holds: ['settings.theme.legend', 'settings.theme.dark', 'settings.density.legend', 'settings.reader'], isFor: forEverybody },
  { id: 'notifications', name: 'settings.section.notifications', holds: ['settings.find.mail', 'settings.find.webhooks'], isFor: forEverybody },
  { id: 'keyboard', name: 'settings.keyboard', holds: ['settings.send.legend', 'settings.find.shortcuts'], isFor: forEverybody },
  { id: 'assistants', name: 'settings.section.assistants', holds: ['settings.find.openings'], isFor: forPeople },
  { id: 'skills', name: 'settings.section.skills', holds: [], isFor: (me) => me !== null && !['viewer', 'approver'].includes(me.user.role) },
  { id: 'rules', name: 'settings.section.rules', holds: ['settings.find.approvals'], isFor: forPeople },
  { id: 'keys', name: 'settings.section.keys', holds: ['settings.find.tokens', 'settings.find.revoke'], isFor: forPeople },
  { id: 'sharing', name: 'settings.section.sharing', holds: ['settings.find.links'], isFor: forRight('sharing.manage') },
  { id: 'readings', name: 'settings.section.readings', holds: ['settings.find.readings'], isFor: forPeople },
  { id: 'people', name: 'settings.section.people', holds: ['settings.find.invitations', 'settings.find.roles', 'settings.find.access', 'settings.find.directory'], isFor: forRight('people.manage'), address: '/admin/people' },
  { id: 'roles', name: 'settings.section.roles', holds: ['settings.find.customRoles', 'settings.find.groups', 'settings.find.rights'], isFor: forRight('people.manage', 'groups.manage', 'roles.manage') },
  { id: 'tenants', name: 'settings.section.tenants', holds: ['settings.find.newTenant', 'settings.find.suspend', 'settings.find.deleteTenant'], isFor: (me) => me?.user.installationAdmin === true, address: '/admin/tenants' },
  { id: 'about', name: 'settings.about', holds: ['settings.find.version', 'settings.thirdParty'], isFor: forEverybody },
]

export function addressOf({ id, address }: Pick<Section, 'id' | 'address'>): string {
  return address ?? `/settings/${id}`
}
