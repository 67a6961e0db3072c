import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { nextTick, reactive } from 'vue'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import type { Me } from '@/wire/restTypes'
import ApiKeys from './ApiKeys.vue'
import { door, type Key, type Person, type Role } from './door'
import NewKeyDialog from './NewKeyDialog.vue'

const AT = '2026-11-01T12:00:00Z'
const route = reactive<{ query: Record<string, string> }>({ query: {} })

vi.mock('vue-router', () => ({
  RouterLink: { template: '<a><slot /></a>' },
  useRoute: () => route,
  useRouter: () => ({ replace: async ({ query }: { query: Record<string, string> }) => (route.query = query) }),
}))

let keys: Key[]

function key(id: string, more: Partial<Key> = {}): Key {
  return { id, prefix: `spl_${id}`, person: 'usr_ana', name: id, createdAt: AT, lastUsedAt: null, expiresAt: null, ...more }
}

function someone(name: string, role: Role): Person {
  return { id: `usr_${name}`, name, role, installationAdmin: false, disabled: false, hasPassword: true, passkeys: 0, passkeyOnly: false, sessions: 0, createdAt: AT, lastSeenAt: null }
}

beforeEach(() => {
  setActivePinia(createPinia())
  route.query = {}
  keys = []
  vi.spyOn(door, 'keys').mockImplementation(async () => ({ items: [...keys], nextCursor: null }))
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show(role: Role) {
  const user = { id: 'usr_ana', name: 'ana', role, installationAdmin: false, rights: role === 'admin' ? ['people.manage', 'keys.manage'] : [] }
  usePerson().me = { user, tenant: { id: 'tnt_1', name: 'acme' }, authMode: 'password' } as unknown as Me
  const part = mount(ApiKeys, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return part
}

it('says when each key was made, used and expires', async () => {
  keys = [key('a', { lastUsedAt: '2020-01-01T12:00:00Z' }), key('b', { name: '', expiresAt: AT }), key('c', { expiresAt: '2999-01-01T00:00:00Z' })]
  const part = await show('member')
  const [first, second, third] = part.findAll('tbody tr').map((row) => row.text())
  expect(first).toMatch(/^a\s+spl_a….*2026.*2020.*Never/)
  expect(second).toMatch(/^No name\s+spl_b….*Never.*Expired .*2026/)
  expect(third).toContain('2999')
  expect(part.find('[role=switch]').exists()).toBe(false)
})

it('shows admins the keys of everybody, and revokes those of people whom they administer', async () => {
  keys = [key('a'), key('b', { person: 'usr_ben' }), key('c', { person: 'usr_cleo' }), key('d', { person: 'usr_gone' })]
  const people = vi.spyOn(door, 'people').mockResolvedValue({ items: [someone('ana', 'admin'), someone('ben', 'member'), someone('cleo', 'owner')], total: 3, nextCursor: null })
  const part = await show('admin')
  expect(door.keys).toHaveBeenLastCalledWith({ limit: 50 })
  expect(people).not.toHaveBeenCalled()
  await part.get('[role=switch]').setValue(true)
  await flushPromises()
  expect(route.query).toEqual({ of: 'everybody' })
  expect(door.keys).toHaveBeenLastCalledWith({ limit: 50, all: true })
  const rows = part.findAll('tbody tr')
  expect(rows.map((row) => row.find('button').exists())).toEqual([true, true, false, true])
  expect(rows[1]?.text()).toContain('ben')
  expect(rows[2]?.text()).toContain('Only owners can revoke it.')
  expect(rows[3]?.text()).toContain('Someone who is gone')
})

it('revokes a key after a question', async () => {
  keys = [key('a')]
  const revoke = vi.spyOn(door, 'revokeKey').mockResolvedValue(undefined as never)
  const part = await show('member')
  await part.get('tbody button').trigger('click')
  await flushPromises()
  expect(document.querySelector('[role=dialog]')?.textContent).toContain('Revoke a?')
  expect(revoke).not.toHaveBeenCalled()
  document.querySelectorAll<HTMLElement>('[role=dialog] button')[1]?.click()
  await flushPromises()
  expect(revoke).toHaveBeenCalledWith('a')
  expect(part.text()).toContain('You have no key.')
})

it('asks again where the list did not come', async () => {
  vi.spyOn(door, 'keys').mockRejectedValueOnce(new RequestError(0, { code: 'offline' }))
  const part = await show('member')
  expect(part.get('[role=alert]').text()).toContain('The server does not answer.')
  await part.get('[role=alert] button').trigger('click')
  await flushPromises()
  expect(part.find('[role=alert]').exists()).toBe(false)
})

it.each([
  ['90', 90],
  ['never', null],
])('makes a key that lasts (%s), and shows its secret once', async (choice, days) => {
  const add = vi.spyOn(door, 'addKey').mockResolvedValue({ key: key('a'), secret: 'spl_once' })
  const part = mount(NewKeyDialog, { props: { open: false }, global: { plugins: [i18n] }, attachTo: document.body })
  await part.setProps({ open: true })
  await nextTick()
  const form = document.querySelector<HTMLFormElement>('[role=dialog] form')
  const name = form?.querySelector<HTMLInputElement>('[name=key-name]')
  if (name) name.value = 'nightly'
  name?.dispatchEvent(new Event('input'))
  const radio = form?.querySelector<HTMLInputElement>(`[type=radio][value="${choice}"]`)
  if (radio) radio.checked = true
  radio?.dispatchEvent(new Event('change'))
  form?.dispatchEvent(new Event('submit'))
  await flushPromises()
  const body = add.mock.calls[0]?.[0]
  expect(body?.name).toBe('nightly')
  if (days === null) expect(body).not.toHaveProperty('expiresAt')
  else expect(Math.round((Date.parse(body?.expiresAt ?? '') - Date.now()) / 86_400_000)).toBe(days)
  expect(document.querySelector<HTMLInputElement>('[role=dialog] input')?.value).toBe('spl_once')
  await part.setProps({ open: false })
  await part.setProps({ open: true })
  expect(document.body.innerHTML).not.toContain('spl_once')
})
