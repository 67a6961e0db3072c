import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import type { Me, Right } from '@/wire/restTypes'
import { door, type Key, type Person } from './door'
import ServiceAccounts from './ServiceAccounts.vue'

const AT = '2026-11-01T12:00:00Z'

let accounts: Person[]
let keys: Key[]

function account(name: string, more: Partial<Person> = {}): Person {
  return { id: `usr_${name}`, name, serviceAccount: true, role: 'member', installationAdmin: false, disabled: false, hasPassword: false, passkeys: 0, passkeyOnly: false, sessions: 0, createdAt: AT, lastSeenAt: null, ...more }
}

function key(id: string, person: string): Key {
  return { id, prefix: `spl_${id}`, person, name: id, createdAt: AT, lastUsedAt: null, expiresAt: null, scopes: ['read'], sessions: null, servers: null }
}

beforeEach(() => {
  setActivePinia(createPinia())
  accounts = []
  keys = []
  vi.spyOn(door, 'serviceAccounts').mockImplementation(async () => ({ items: [...accounts], nextCursor: null }))
  vi.spyOn(door, 'keys').mockImplementation(async () => ({ items: [...keys], nextCursor: null }))
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show(rights: Right[] = ['people.manage', 'keys.manage']) {
  const user = { id: 'usr_ana', name: 'ana', role: 'admin', installationAdmin: false, rights }
  usePerson().me = { user, tenant: { id: 'tnt_1', name: 'acme' }, authMode: 'password' } as unknown as Me
  const part = mount(ServiceAccounts, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return part
}

it('lists the accounts with their keys', async () => {
  accounts = [account('robot'), account('old', { disabled: true }), account('chief', { role: 'admin' })]
  keys = [key('nightly', 'usr_robot'), key('other', 'usr_ana')]
  const part = await show()
  const [robot, old, chief] = part.findAll('.account')
  expect(robot?.text()).toContain('nightly · used Never · expires Never · Read')
  expect(robot?.text()).not.toContain('other')
  expect(old?.text()).toContain('Disabled')
  expect(chief?.find('select').exists()).toBe(false)
  expect(robot?.findAll('option').map((option) => option.text())).toEqual(['Viewer', 'Approver', 'Member'])
})

it('shows no keys to those who do not manage them', async () => {
  accounts = [account('robot')]
  const part = await show(['people.manage'])
  expect(door.keys).not.toHaveBeenCalled()
  expect(part.text()).not.toContain('New key')
})

it('adds, renames and disables accounts', async () => {
  accounts = [account('robot')]
  const add = vi.spyOn(door, 'addServiceAccount').mockResolvedValue(account('helper'))
  const change = vi.spyOn(door, 'change').mockResolvedValue(account('robot'))
  const part = await show()
  await part.get('#new-account').setValue(' helper ')
  await part.findAll('form').at(-1)?.trigger('submit')
  await flushPromises()
  expect(add).toHaveBeenCalledWith({ name: 'helper', role: 'member' })
  await part.get('[aria-label="Rename robot"]').trigger('click')
  await part.get('#rename-usr_robot').setValue('android')
  await part.findAll('form')[0]?.trigger('submit')
  await flushPromises()
  expect(change).toHaveBeenCalledWith('usr_robot', { name: 'android' })
  const disable = part.findAll('button').find((button) => button.text() === 'Disable…')
  await disable?.trigger('click')
  await flushPromises()
  expect(document.querySelector('[role=dialog]')?.textContent).toContain('The keys of robot stop working')
})

it('says why something was refused', async () => {
  accounts = [account('robot')]
  vi.spyOn(door, 'addServiceAccount').mockRejectedValue(new RequestError(409, { code: 'invalid_arguments', detail: 'the name is taken' }))
  const part = await show()
  await part.get('#new-account').setValue('robot')
  await part.findAll('form').at(-1)?.trigger('submit')
  await flushPromises()
  expect(part.get('[role=alert]').text()).toContain('the name is taken')
})
