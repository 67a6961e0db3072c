import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { reactive } from 'vue'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { recall, remember, STEP_UP } from '@/browser/storage'
import { provider } from '@/gestures/provider'
import { i18n } from '@/locales'
import { door } from '@/signin/door'
import { takeProblem } from '@/signin/outcome'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import type { Me } from '@/wire/restTypes'
import SignedInPage from './SignedInPage.vue'
import SignInPage from './SignInPage.vue'

const replace = vi.fn(async (to: unknown) => {
  if (typeof to === 'object' && to !== null && 'hash' in to) route.hash = ''
})
const route = reactive({ hash: '', query: {} as Record<string, string> })

vi.mock('vue-router', async () => ({
  useRoute: () => route,
  useRouter: () => ({ replace }),
}))

const ME = {
  user: { id: 'usr_2', name: 'ben', role: 'member', installationAdmin: false },
  tenant: { id: 'tnt_1', name: 'acme' },
  csrfToken: 't',
  installation: { name: 'Sepal', version: '1.0.0' },
  authMode: 'password',
  encrypted: false,
} as unknown as Me

beforeEach(() => {
  setActivePinia(createPinia())
  replace.mockClear()
  route.hash = '#at=company&state=s&code=c&iss=https%3A%2F%2Fop.test'
  route.query = {}
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show(component: typeof SignInPage | typeof SignedInPage) {
  const page = mount(component, { global: { plugins: [i18n] } })
  await flushPromises()
  return page
}

const refused = (status: number, code: string, reason?: string) => new RequestError(status, { code, detail: 'their <b>words</b>', ...(reason && { reason }) })

it('takes the answer out of the address and goes where the person began', async () => {
  const finish = vi.spyOn(door, 'finish').mockResolvedValue({ me: ME, returnTo: '/admin/rules' })
  await show(SignedInPage)
  expect(finish).toHaveBeenCalledWith('company', { state: 's', code: 'c', iss: 'https://op.test', error: undefined })
  expect(replace.mock.calls).toEqual([[{ hash: '' }], ['/admin/rules']])
  expect(usePerson().me?.user.name).toBe('ben')
})

it('makes a gesture where the answer is of a confirmation, and signs nobody in', async () => {
  remember(STEP_UP, 's')
  const finish = vi.spyOn(door, 'finish')
  const made = vi.spyOn(provider, 'finish').mockResolvedValue({ gestures: [{ sessionId: 'ses_1', gesture: 'g' }], expiresInSeconds: 120 })
  const told: unknown[] = []
  const channel = new BroadcastChannel('sepal.stepUp')
  const heard = new Promise<void>((resolve) => {
    channel.onmessage = ({ data }) => {
      told.push(data)
      resolve()
    }
  })
  const page = await show(SignedInPage)
  await heard
  channel.close()
  expect(told).toEqual([{ state: 's', gesture: 'g' }])
  expect(made).toHaveBeenCalledWith({ state: 's', code: 'c', iss: 'https://op.test', error: undefined })
  expect(finish).not.toHaveBeenCalled()
  await vi.waitFor(() => expect(page.text()).toContain('Confirmed. You can close this window.'))
  // The same address once more is no confirmation.
  expect(recall(STEP_UP)).toBe(null)
})

it('never goes to another site', async () => {
  vi.spyOn(door, 'finish').mockResolvedValue({ me: ME, returnTo: '//evil.example' })
  await show(SignedInPage)
  expect(replace).toHaveBeenLastCalledWith('/s/new')
})

it.each([
  ['denied', 'The provider did not let you in, or you cancelled.'],
  ['disabled', 'Your access here has ended.'],
  ['another', 'You could not be signed in. their <b>words</b>'],
])('leads back to the sign-in page, which says why: %s', async (reason, words) => {
  vi.spyOn(door, 'finish').mockRejectedValue(refused(403, 'not_allowed', reason))
  await show(SignedInPage)
  expect(replace).toHaveBeenLastCalledWith({ name: 'sign-in' })
  route.hash = ''
  usePerson().signInProviders = []
  const page = await show(SignInPage)
  expect(page.get('[role=alert]').text()).toContain(words)
  expect(page.find('b').exists()).toBe(false)
  expect(takeProblem(), 'it is shown once').toBe('')
})

it('has a button for each provider, which leads there', async () => {
  route.hash = ''
  route.query = { to: '/admin/rules' }
  usePerson().signInProviders = [
    { id: 'a', name: 'Acme' },
    { id: 'b', name: '<i>B</i>' },
  ]
  const begin = vi.spyOn(door, 'begin').mockRejectedValueOnce(refused(503, 'sign_in_unavailable', 'unavailable'))
  const page = await show(SignInPage)
  const [first, second] = page.findAll('button')
  expect(first?.text()).toBe('Continue with Acme')
  expect(second?.text()).toBe('Continue with <i>B</i>')
  await first?.trigger('click')
  await flushPromises()
  expect(begin).toHaveBeenCalledWith('a', '/admin/rules')
  expect(page.get('[role=alert]').text()).toContain('The provider does not answer.')
})

it('asks for the providers after somebody signed out', async () => {
  route.hash = ''
  const person = usePerson()
  const identify = vi.spyOn(person, 'identify').mockImplementation(async () => {
    person.signInProviders = [{ id: 'a', name: 'Acme' }]
  })
  const page = await show(SignInPage)
  expect(identify).toHaveBeenCalledOnce()
  expect(page.text()).toContain('Continue with Acme')
})
