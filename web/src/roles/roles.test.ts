import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { door as peopleDoor } from '@/people/door'
import { door as ruleDoor } from '@/rules/door'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import { door, type CustomRole, type Group, type GroupDetails, type Right } from './door'
import PersonRolesDialog from './PersonRolesDialog.vue'
import { nameOf, RIGHTS } from './rights'
import RolesSection from './RolesSection.vue'

const AT = '2026-11-01T12:00:00Z'

vi.mock('vue-router', async (original) => ({ ...(await original<object>()), RouterLink: { template: '<a><slot /></a>' } }))

let roles: CustomRole[]
let groups: Group[]
let details: GroupDetails

function role(id: string, name: string, rights: Right[]): CustomRole {
  return { id, name, description: '', rights, people: 1, groups: 0, createdAt: AT }
}

function enter(...rights: Right[]) {
  usePerson().me = { user: { id: 'usr_ana', name: 'ana', role: 'member', installationAdmin: false, rights } } as unknown as Me
}

const button = (name: string) => [...document.querySelectorAll<HTMLElement>('button')].find((it) => (it.getAttribute('aria-label') ?? it.textContent?.trim()) === name)

async function press(name: string) {
  const found = button(name)
  if (!found) throw new Error(`there is no button ${name}`)
  found.click()
  await flushPromises()
}

function box(label: string): HTMLInputElement {
  const found = [...document.querySelectorAll<HTMLElement>('[role=dialog] label')].find((it) => it.textContent?.trim() === label)
  const input = found?.querySelector('input')
  if (!input) throw new Error(`there is no box ${label}`)
  return input
}

async function type(name: string, value: string) {
  const input = document.querySelector<HTMLInputElement>(`[name=${name}]`)
  if (!input) throw new Error(`there is no field ${name}`)
  input.value = value
  input.dispatchEvent(new Event('input'))
  await flushPromises()
}

async function submit() {
  document.querySelector('[role=dialog] form')?.dispatchEvent(new Event('submit'))
  await flushPromises()
}

beforeEach(() => {
  setActivePinia(createPinia())
  roles = [role('rol_1', 'Auditor', ['audit.read']), role('rol_2', 'Reader', ['sessions.read_content'])]
  groups = [{ id: 'grp_1', name: 'Finance', description: '', members: 1, createdAt: AT }]
  details = { group: { id: 'grp_1', name: 'Finance', description: '', members: 1, createdAt: AT }, members: [{ id: 'usr_ben', name: 'ben', issuer: null }], roles: [{ id: 'rol_1', name: 'Auditor' }], models: [], servers: [] }
  const builtIn = [{ name: 'viewer' as const, rights: [] }, { name: 'admin' as const, rights: ['audit.read' as const] }]
  vi.spyOn(door, 'roles').mockImplementation(async () => ({ items: [...roles], builtIn, giveable: ['audit.read', 'usage.read'], nextCursor: null }))
  vi.spyOn(door, 'groups').mockImplementation(async () => ({ items: [...groups], nextCursor: null }))
  vi.spyOn(door, 'group').mockImplementation(async () => details)
  vi.spyOn(peopleDoor, 'people').mockResolvedValue({ items: [{ id: 'usr_cleo', name: 'cleo' }] as never, total: 1, nextCursor: null })
  vi.spyOn(usePerson(), 'identify').mockResolvedValue()
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show(part: typeof RolesSection) {
  const shown = mount(part, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return shown
}

describe('roles', () => {
  it('names every right', () => {
    for (const right of RIGHTS) expect(nameOf(right)).not.toContain('roles.right')
  })

  it('lists roles, and lets those be changed whose rights one may give', async () => {
    enter('people.manage', 'roles.manage')
    const part = await show(RolesSection)
    expect(part.text()).toContain('Read the whole audit')
    expect(part.text()).toContain('1 person')
    expect(button('Edit Auditor')).toBeTruthy()
    expect(button('Edit Reader')).toBeUndefined()
  })

  it('shows them to those who may not change them, and nothing to others', async () => {
    enter('people.manage')
    const part = await show(RolesSection)
    expect(part.text()).toContain('Auditor')
    expect(button('New role')).toBeUndefined()
    part.unmount()
    enter()
    const nothing = await show(RolesSection)
    expect(nothing.text()).toContain('Only people who manage')
    expect(door.roles).toHaveBeenCalledTimes(1)
  })

  it('makes a role of the rights that one may give', async () => {
    enter('people.manage', 'roles.manage')
    const add = vi.spyOn(door, 'addRole').mockImplementation(async ({ name, rights }) => role('rol_3', name, rights))
    await show(RolesSection)
    await press('New role')
    await type('role-name', ' Counter ')
    expect(box('Read sessions of others, for a reason and one hour').disabled).toBe(true)
    box('Read what everybody used').click()
    await submit()
    expect(add).toHaveBeenCalledWith({ name: 'Counter', description: '', rights: ['usage.read'] })
  })

  it('says why a role was refused and keeps what was typed', async () => {
    enter('people.manage', 'roles.manage')
    vi.spyOn(door, 'changeRole').mockRejectedValue(new RequestError(409, { code: 'invalid_arguments', detail: 'it is taken' }))
    await show(RolesSection)
    await press('Edit Auditor')
    await type('role-name', 'Reader')
    await submit()
    expect(document.querySelector('[role=dialog] [role=alert]')?.textContent).toContain('it is taken')
    expect(document.querySelector<HTMLInputElement>('[name=role-name]')?.value).toBe('Reader')
  })

  it('adds and removes members of a group', async () => {
    enter('people.manage', 'groups.manage')
    const join = vi.spyOn(door, 'join').mockResolvedValue(undefined)
    const leave = vi.spyOn(door, 'leave').mockResolvedValue(undefined)
    await show(RolesSection)
    await press('Edit group Finance')
    await press('Remove ben')
    expect(leave).toHaveBeenCalledWith('grp_1', 'usr_ben')
    const select = document.querySelector<HTMLSelectElement>('[role=dialog] select')
    if (!select) throw new Error('nobody is offered')
    select.value = 'usr_cleo'
    select.dispatchEvent(new Event('change'))
    document.querySelectorAll('[role=dialog] form')[1]?.dispatchEvent(new Event('submit'))
    await flushPromises()
    expect(join).toHaveBeenCalledWith('grp_1', 'usr_cleo')
  })

  it('shows what a group carries, and changes models and servers of those who may', async () => {
    enter('people.manage', 'groups.manage', 'providers.manage', 'servers.manage', 'rules.manage', 'budgets.manage')
    details = { ...details, models: ['openai'], servers: [] }
    const set = vi.spyOn(door, 'setAccess').mockImplementation(async (_, { models = details.models, servers = details.servers }) => (details = { ...details, models, servers }))
    vi.spyOn(door, 'servers').mockResolvedValue(['ledger'])
    const rule = { id: 'rul_1', sentence: 'Always, for the members of “Finance”, never run anything.', group: { id: 'grp_1', name: 'Finance' } }
    vi.spyOn(ruleDoor, 'rules').mockResolvedValue({ rules: [rule, { ...rule, id: 'rul_2', sentence: 'Another', group: undefined }] as never })
    vi.spyOn(rest, 'budgets').mockResolvedValue({ inForce: [], set: [{ level: 'group_pooled', subject: 'grp_1', name: 'Finance', period: 'month', limitUsd: 5, leftUsd: 4, isNear: false, isExhausted: false, source: 'subject' }] } as never)
    await show(RolesSection)
    await press('Edit group Finance')
    const dialog = document.querySelector('[role=dialog]')
    expect(dialog?.textContent).toContain('for the members of')
    expect(dialog?.textContent).not.toContain('Another')
    expect(dialog?.textContent).toContain('All members of Finance, each month')
    await press('Remove openai from this group')
    expect(set).toHaveBeenLastCalledWith('grp_1', { models: [] })
    await type('group-model', ' anthropic/large ')
    document.querySelector('[name=group-model]')?.closest('form')?.dispatchEvent(new Event('submit'))
    await flushPromises()
    expect(set).toHaveBeenLastCalledWith('grp_1', { models: ['anthropic/large'] })
    const select = document.querySelector<HTMLSelectElement>('[name=group-server]')
    if (!select) throw new Error('no server is offered')
    select.value = 'ledger'
    select.dispatchEvent(new Event('change'))
    select.closest('form')?.dispatchEvent(new Event('submit'))
    await flushPromises()
    expect(set).toHaveBeenLastCalledWith('grp_1', { servers: ['ledger'] })
    set.mockRejectedValue(new RequestError(403, { code: 'not_allowed', detail: 'you lack a right' }))
    await press('Remove ledger from this group')
    expect(dialog?.querySelector('[role=alert]')?.textContent).toContain('you lack a right')
  })

  it('only shows models and servers of a group to those who manage no such things', async () => {
    enter('people.manage', 'groups.manage')
    details = { ...details, models: ['openai'], servers: ['ledger'] }
    await show(RolesSection)
    await press('Edit group Finance')
    expect(document.querySelector('[role=dialog]')?.textContent).toContain('ledger')
    expect(button('Remove openai from this group')).toBeUndefined()
    expect(document.querySelector('[name=group-model]')).toBeNull()
  })

  it('gives a person exactly the roles that are ticked', async () => {
    enter('people.manage', 'roles.manage')
    vi.spyOn(door, 'rolesOf').mockResolvedValue({ roles: [{ id: 'rol_1', name: 'Auditor' }], groups: [{ id: 'grp_1', name: 'Finance' }], rights: ['audit.read'] })
    const set = vi.spyOn(door, 'setRolesOf').mockResolvedValue({ roles: [], groups: [], rights: [] })
    mount(PersonRolesDialog, { props: { modelValue: { id: 'usr_ben', name: 'ben' } }, global: { plugins: [i18n] }, attachTo: document.body })
    await flushPromises()
    expect(document.querySelector('[role=dialog]')?.textContent).toContain('Groups: Finance')
    expect(box('Auditor').checked).toBe(true)
    box('Auditor').click()
    await flushPromises()
    box('Reader').click()
    await flushPromises()
    await submit()
    expect(set).toHaveBeenCalledWith('usr_ben', ['rol_2'])
  })
})
