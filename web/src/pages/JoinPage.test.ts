import { enableAutoUnmount, flushPromises, mount, RouterLinkStub } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { reactive } from 'vue'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { door } from '@/people/door'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import type { Me } from '@/wire/restTypes'
import JoinPage from './JoinPage.vue'

const replace = vi.fn(async (to: unknown) => {
  if (typeof to === 'object') route.hash = ''
})
const route = reactive({ hash: '' })

vi.mock('vue-router', async () => ({
  RouterLink: RouterLinkStub,
  useRoute: () => route,
  useRouter: () => ({ replace }),
}))

const FACTS = { tenant: 'acme', role: 'member' as const, invitedBy: 'Ana', expiresAt: '2026-12-01T00:00:00Z' }
const ME = {
  user: { id: 'usr_2', name: 'Ben', role: 'member', installationAdmin: false },
  tenant: { id: 'tnt_1', name: 'acme' },
  csrfToken: 't',
  installation: { name: 'Sepal', version: '1.0.0' },
  authMode: 'password',
  encrypted: false,
} as unknown as Me

beforeEach(() => {
  setActivePinia(createPinia())
  replace.mockClear()
  route.hash = '#swordfish'
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show() {
  const page = mount(JoinPage, { global: { plugins: [i18n] } })
  await flushPromises()
  return page
}

const refused = (status: number, code: string, detail = '') => new RequestError(status, { code, detail })

it('says who invites, takes the secret out of the address, and lets the person in', async () => {
  const read = vi.spyOn(door, 'readInvitation').mockResolvedValue(FACTS)
  const join = vi.spyOn(door, 'join').mockResolvedValue(ME)
  const page = await show()
  expect(replace).toHaveBeenCalledWith({ hash: '' })
  expect(read).toHaveBeenCalledWith('swordfish')
  expect(page.get('h1').text()).toBe('Join acme')
  expect(page.text()).toContain('Ana invites you to acme as a member.')
  await page.get('input[name=name]').setValue(' Ben ')
  await page.get('input[name=password]').setValue('a long enough password')
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(join).toHaveBeenCalledWith({ secret: 'swordfish', name: 'Ben', password: 'a long enough password' })
  expect(usePerson().me?.user.name).toBe('Ben')
  expect(replace).toHaveBeenLastCalledWith('/s/new')
})

it('says what to do where there is no invitation, or none any more', async () => {
  vi.spyOn(door, 'readInvitation').mockRejectedValue(refused(401, 'unauthorized'))
  const used = await show()
  expect(used.get('[role=alert]').text()).toContain('Ask for a new link.')
  expect(used.find('form').exists()).toBe(false)
  used.unmount()
  route.hash = ''
  const empty = await show()
  expect(empty.get('[role=alert]').text()).toContain('Open your link again')
})

it('asks again where the server did not answer', async () => {
  const read = vi.spyOn(door, 'readInvitation').mockRejectedValueOnce(refused(0, 'offline'))
  read.mockResolvedValueOnce(FACTS)
  const page = await show()
  expect(page.get('[role=alert]').text()).toContain('The server does not answer.')
  await page.get('button').trigger('click')
  await flushPromises()
  expect(page.find('form').exists()).toBe(true)
})

it('keeps what was typed where the name is taken, and ends where the invitation was used meanwhile', async () => {
  vi.spyOn(door, 'readInvitation').mockResolvedValue({ ...FACTS, invitedBy: null })
  const join = vi.spyOn(door, 'join').mockRejectedValueOnce(refused(409, 'invalid_arguments'))
  const page = await show()
  expect(page.text()).toContain('You are invited to acme as a member.')
  await page.get('input[name=name]').setValue('Ana')
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.get('[role=alert]').text()).toBe('Someone here is already called Ana. Choose another name.')
  expect(page.get<HTMLInputElement>('input[name=name]').element.value).toBe('Ana')
  join.mockRejectedValueOnce(refused(401, 'unauthorized'))
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.find('form').exists()).toBe(false)
  expect(page.get('[role=alert]').text()).toContain('Ask for a new link.')
})

it('tells somebody who is signed in that they leave that account', async () => {
  usePerson().me = { ...ME, user: { ...ME.user, name: 'Cleo' } }
  vi.spyOn(door, 'readInvitation').mockResolvedValue(FACTS)
  expect((await show()).text()).toContain('You are signed in as Cleo.')
})
