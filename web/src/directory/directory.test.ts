import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { door as peopleDoor, type Person } from '@/people/door'
import { usePerson } from '@/stores/person'
import { politeText } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import type { Me } from '@/wire/restTypes'
import DirectorySection from './DirectorySection.vue'
import { door, type DirectoryPerson, type ScimToken } from './door'

const AT = '2026-11-01T12:00:00Z'

vi.mock('vue-router', () => ({ RouterLink: { template: '<a><slot /></a>' }, useRoute: () => ({ query: {} }), useRouter: () => ({}) }))

let tokens: ScimToken[]
let people: DirectoryPerson[]

function token(id: string, more: Partial<ScimToken> = {}): ScimToken {
  return { id, name: id, role: 'member', deletes: false, createdBy: null, createdAt: AT, lastUsedAt: null, ...more }
}

function one(name: string, more: Partial<DirectoryPerson> = {}): DirectoryPerson {
  return { id: `usr_${name}`, name, userName: `${name}@acme.com`, externalId: null, linked: false, removed: false, disabled: false, changedAt: AT, ...more }
}

beforeEach(() => {
  setActivePinia(createPinia())
  tokens = [token('Entra')]
  people = []
  vi.spyOn(door, 'tokens').mockImplementation(async () => ({ items: [...tokens], nextCursor: null, address: 'https://sepal.example/scim/v2' }))
  vi.spyOn(door, 'people').mockImplementation(async () => ({ items: [...people], nextCursor: null }))
  vi.spyOn(door, 'groups').mockImplementation(async () => ({ items: [{ id: 'grp_1', name: 'Finance', externalId: null, linked: true }], nextCursor: null }))
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show(authMode = 'password') {
  const user = { id: 'usr_ana', name: 'ana', role: 'owner', installationAdmin: false, rights: ['people.manage', 'people.manage_admins'] }
  usePerson().me = { user, tenant: { id: 'tnt_1', name: 'acme' }, authMode } as unknown as Me
  const part = mount(DirectorySection, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return part
}

const dialog = () => document.querySelector('[role=dialog]')

async function press(name: string) {
  const button = [...document.querySelectorAll<HTMLElement>('[role=dialog] button')].find((it) => it.textContent?.trim() === name)
  if (!button) throw new Error(`no dialog has the button ${name}`)
  button.click()
  await flushPromises()
}

async function type(field: string, value: string) {
  const input = document.querySelector<HTMLInputElement>(`[role=dialog] input[name=${field}]`)
  if (!input) throw new Error(`no field ${field}`)
  input.value = value
  input.dispatchEvent(new Event('input'))
  await flushPromises()
}

it('says what each token does, and whom the directory manages', async () => {
  tokens = [token('Entra', { lastUsedAt: AT }), token('Okta', { name: '', role: 'viewer', deletes: true })]
  people = [one('ann', { linked: true }), one('ben', { removed: true, disabled: true })]
  const part = await show()
  expect(part.text()).toContain('https://sepal.example/scim/v2')
  const rows = part.findAll('li').map((row) => row.text())
  expect(rows[0]).toContain('Adds people as members. When it deletes someone, they are disabled.')
  expect(rows[1]).toMatch(/No name.*as viewers.*deleted for good.*Never used/s)
  expect(rows[2]).toContain('ann@acme.com in the directory · Linked here')
  expect(rows[3]).toContain('Deleted by the directory')
  expect(rows[4]).toContain('Finance')
})

it('shows the secret of a new token once', async () => {
  const add = vi.spyOn(door, 'addToken').mockResolvedValue({ token: token('New'), secret: 'scim_secret' })
  const part = await show()
  await part.get('#new-scim-token').trigger('click')
  await flushPromises()
  await type('token-name', ' Entra ')
  await press('Create token')
  expect(add).toHaveBeenCalledWith({ name: 'Entra', role: 'member', deletes: false })
  expect(dialog()?.querySelector('input')?.value).toBe('scim_secret')
  await press('Done')
  expect(document.body.innerHTML).not.toContain('scim_secret')
})

it('asks before a token is revoked', async () => {
  const revoke = vi.spyOn(door, 'revokeToken').mockResolvedValue(undefined)
  const part = await show()
  await part.get('#revoke-Entra').trigger('click')
  await flushPromises()
  expect(dialog()?.textContent).toContain('people and groups stay')
  expect(revoke).not.toHaveBeenCalled()
  await press('Revoke')
  expect(revoke).toHaveBeenCalledWith('Entra')
  expect(politeText.value).toContain('The token is revoked.')
})

it('links somebody who is here by their name, and says why not', async () => {
  const ann = { id: 'usr_ann', name: 'Ann' } as unknown as Person
  vi.spyOn(peopleDoor, 'people').mockResolvedValue({ items: [ann], total: 1, nextCursor: null })
  const link = vi.spyOn(door, 'linkPerson').mockRejectedValueOnce(new RequestError(409, { code: 'invalid_arguments', detail: 'is linked already' }))
  const part = await show()
  await part.get('#link-to-directory').trigger('click')
  await flushPromises()
  await type('here', 'bob')
  await type('there', 'ann@acme.com')
  await press('Link')
  expect(dialog()?.textContent).toContain('No one here has this name.')
  expect(link).not.toHaveBeenCalled()
  await type('here', 'ann')
  await press('Link')
  expect(dialog()?.textContent).toContain('That did not work: is linked already')
  link.mockResolvedValueOnce(one('ann', { linked: true }))
  await press('Link')
  expect(link).toHaveBeenLastCalledWith('usr_ann', { userName: 'ann@acme.com' })
  expect(politeText.value).toContain('ann is linked.')
})

it('offers no token where nobody signs in', async () => {
  tokens = []
  const part = await show('none')
  expect(part.text()).toContain('Nobody signs in here')
  expect(part.find('#new-scim-token').exists()).toBe(false)
})
