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
  return { id, prefix: `spl_${id}`, person: 'usr_ana', name: id, createdAt: AT, lastUsedAt: null, expiresAt: null, scopes: ['read', 'message', 'decide', 'administer'], sessions: null, servers: null, ...more }
}

function someone(name: string, role: Role): Person {
  return { id: `usr_${name}`, name, serviceAccount: false, role, installationAdmin: false, disabled: false, hasPassword: true, passkeys: 0, passkeyOnly: false, sessions: 0, createdAt: AT, lastSeenAt: null }
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

it('says what each key may do', async () => {
  keys = [key('a'), key('b', { scopes: ['read', 'message'] }), key('c', { scopes: ['read'], sessions: ['ses_1'], servers: ['files', 'mail'] })]
  const part = await show('member')
  const [first, second, third] = part.findAll('tbody tr').map((row) => row.text())
  expect(first).toContain('Everything')
  expect(second).toContain('Read, Message')
  expect(third).toContain('Read · only 1 session · only files, mail')
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

const SESSION = `ses_${'0'.repeat(32)}`

async function dialog(account?: Person) {
  const part = mount(NewKeyDialog, { props: { open: false, ...(account && { account }) }, global: { plugins: [i18n] }, attachTo: document.body })
  await part.setProps({ open: true })
  await nextTick()
  const form = document.querySelector<HTMLFormElement>('[role=dialog] form')
  const field = (name: string) => form?.querySelector<HTMLInputElement>(`[name=${name}]`)
  const write = async (name: string, text: string) => {
    const input = field(name)
    if (input) input.value = text
    input?.dispatchEvent(new Event('input'))
    await nextTick()
  }
  const scope = (value: string) => form?.querySelector<HTMLInputElement>(`[name=scope][value=${value}]`)
  const tick = async (value: string, checked: boolean) => {
    const box = scope(value)
    if (box) box.checked = checked
    box?.dispatchEvent(new Event('change'))
    await nextTick()
  }
  const send = async () => {
    form?.dispatchEvent(new Event('submit'))
    await flushPromises()
  }
  return { scope, tick, write, send, alert: () => form?.querySelector('[role=alert]')?.textContent }
}

it('lets a new key work with sessions and administer nothing, unless somebody says so', async () => {
  const add = vi.spyOn(door, 'addKey').mockResolvedValue({ key: key('a'), secret: 'spl_once' })
  const { scope, tick, send } = await dialog()
  expect(['read', 'message', 'decide', 'administer'].map((name) => scope(name)?.checked)).toEqual([true, true, true, false])
  await tick('administer', true)
  await tick('decide', false)
  await send()
  expect(add.mock.calls[0]?.[0].scopes?.toSorted()).toEqual(['administer', 'message', 'read'])
})

it('limits a key to sessions and servers, and lets it administer nothing then', async () => {
  const add = vi.spyOn(door, 'addKey').mockResolvedValue({ key: key('a'), secret: 'spl_once' })
  const { scope, tick, write, send } = await dialog()
  await tick('administer', true)
  await write('key-sessions', `https://sepal.example/s/${SESSION}`)
  await write('key-servers', 'files, mail')
  expect(scope('administer')?.disabled).toBe(true)
  await send()
  const body = add.mock.calls[0]?.[0]
  expect(body?.scopes).toEqual(['read', 'message', 'decide'])
  expect([body?.sessions, body?.servers]).toEqual([[SESSION], ['files', 'mail']])
})

it('makes no key that may do nothing, or whose sessions it cannot read', async () => {
  const add = vi.spyOn(door, 'addKey')
  const { tick, write, send, alert } = await dialog()
  await write('key-sessions', 'the one of yesterday')
  await send()
  expect(alert()).toContain('No session is named.')
  await write('key-sessions', '')
  for (const name of ['read', 'message', 'decide']) await tick(name, false)
  await send()
  expect(alert()).toContain('Choose at least one thing')
  expect(add).not.toHaveBeenCalled()
})

it('makes a key of a service account', async () => {
  const add = vi.spyOn(door, 'addServiceKey').mockResolvedValue({ key: key('a'), secret: 'spl_once' })
  const { send } = await dialog({ ...someone('robot', 'member'), serviceAccount: true })
  await send()
  expect(add).toHaveBeenCalledWith('usr_robot', expect.objectContaining({ scopes: ['read', 'message', 'decide'] }))
})
