import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { PasskeyProblem } from '@/gestures/door'
import { i18n } from '@/locales'
import { passkeyDoor } from '@/signin/passkey'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import SignInPage from './SignInPage.vue'

vi.mock('vue-router', () => ({
  RouterLink: { template: '<a><slot /></a>' },
  useRoute: () => ({ query: {}, hash: '' }),
  useRouter: () => ({ replace: async () => {} }),
}))

beforeEach(() => {
  document.head.innerHTML = '<base href="/sepal/">'
})
enableAutoUnmount(afterEach)
afterEach(() => {
  document.head.innerHTML = ''
  localStorage.clear()
  vi.restoreAllMocks()
})

function me(id: string, tenant: string): Me {
  return { user: { id, name: 'ben', role: 'member' }, tenant: { id: `ten_${tenant}`, name: tenant }, csrfToken: 't', installation: { name: 'Sepal', version: '1.0.0' } } as unknown as Me
}

async function show() {
  setActivePinia(createPinia())
  const part = mount(SignInPage, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return part
}

it('asks for a team only where somebody names one, and remembers it in this browser', async () => {
  vi.spyOn(rest, 'me').mockRejectedValue(new RequestError(401, { code: 'unauthorized' }))
  const signIn = vi.spyOn(rest, 'signIn').mockRejectedValueOnce(new RequestError(401, { code: 'unauthorized' }))
  const part = await show()
  expect(part.find('[name=team]').exists()).toBe(false)
  await part.findAll('button').find((button) => button.text() === 'Another team')?.trigger('click')
  await flushPromises()
  expect(document.activeElement).toBe(part.get('[name=team]').element)
  await part.get('[name=team]').setValue(' acme ')
  await part.get('[name=name]').setValue('ben')
  await part.get('[name=password]').setValue('a password')
  await part.get('form').trigger('submit')
  await flushPromises()
  expect(signIn).toHaveBeenCalledWith({ name: 'ben', password: 'a password', tenant: 'acme' })
  expect(part.get('[role=alert]').text()).toBe('Wrong team, name or password.')
  signIn.mockResolvedValueOnce(me('usr_ben', 'acme'))
  await part.get('form').trigger('submit')
  await flushPromises()
  expect((await show()).get<HTMLInputElement>('[name=team]').element.value).toBe('acme')

  // Who needs to name none is not asked for one.
  const other = await show()
  signIn.mockResolvedValueOnce(me('usr_ana', 'default'))
  await other.get('form').trigger('submit')
  await flushPromises()
  expect((await show()).find('[name=team]').exists()).toBe(false)
})

it('signs in by a passkey without a name, and says where none was used', async () => {
  vi.stubGlobal('PublicKeyCredential', {})
  vi.spyOn(rest, 'me').mockRejectedValue(new RequestError(401, { code: 'unauthorized' }))
  const asked = vi.spyOn(passkeyDoor, 'start').mockResolvedValue({ publicKey: { challenge: 'AAAA' } })
  const used = vi.spyOn(passkeyDoor, 'use').mockRejectedValueOnce(new PasskeyProblem('NotAllowedError'))
  const finish = vi.spyOn(passkeyDoor, 'finish').mockRejectedValueOnce(new RequestError(401, { code: 'unauthorized' }))
  const part = await show()
  const press = async () => {
    await part.findAll('button').find((button) => button.text() === 'Sign in with a passkey')?.trigger('click')
    await vi.waitFor(() => expect(part.get('[type=submit]').text()).toBe('Sign in'))
    await flushPromises()
  }
  await press()
  await vi.waitFor(() => expect(part.get('[role=alert]').text()).toMatch(/^No passkey was used/))
  used.mockResolvedValue({ id: 'x' })
  await press()
  await vi.waitFor(() => expect(part.get('[role=alert]').text()).toMatch(/^This passkey is not known here/))
  finish.mockResolvedValueOnce(me('usr_ben', 'acme'))
  await press()
  await vi.waitFor(() => expect(usePerson().me?.user.id).toBe('usr_ben'))
  expect(asked).toHaveBeenCalledTimes(3)
  expect(finish).toHaveBeenCalledWith({ id: 'x' })
  vi.unstubAllGlobals()
})
