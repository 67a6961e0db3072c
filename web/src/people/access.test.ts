import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { door as gestures } from '@/gestures/door'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import { politeText } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import type { Me } from '@/wire/restTypes'
import { door, type SignIn } from './door'
import MyPassword from './MyPassword.vue'
import MySignIns from './MySignIns.vue'

const AT = '2026-11-01T12:00:00Z'

let signIns: SignIn[]

function signIn(id: string, more: Partial<SignIn> = {}): SignIn {
  return { id, current: false, createdAt: AT, lastSeenAt: AT, ...more }
}

beforeEach(() => {
  setActivePinia(createPinia())
  usePerson().me = { user: { id: 'usr_ana', name: 'ana' } } as unknown as Me
  signIns = [signIn('phone', { lastSeenAt: '2020-01-01T12:00:00Z' }), signIn('here', { current: true }), signIn('work')]
  vi.spyOn(door, 'signIns').mockImplementation(async () => ({ items: [...signIns], nextCursor: null }))
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function press(name: string) {
  const button = [...document.querySelectorAll<HTMLElement>('[role=dialog] button')].find((it) => it.textContent?.trim() === name)
  if (!button) throw new Error(`no dialog has the button ${name}`)
  button.click()
  await flushPromises()
}

const dialog = () => document.querySelector('[role=dialog]')?.textContent ?? ''

describe('sign-ins', () => {
  async function show() {
    const part = mount(MySignIns, { global: { plugins: [i18n] }, attachTo: document.body })
    await flushPromises()
    return part
  }

  it('begin with this browser, which stays, and say when the others were used', async () => {
    const rows = (await show()).findAll('li')
    expect(rows.map((row) => row.find('button').exists())).toEqual([false, true, true])
    expect(rows[0]?.text()).toMatch(/^This browser\s*Signed in .*2026/)
    expect(rows[1]?.text()).toMatch(/^Another browser.*Last used: .*2020/)
  })

  it('end after a question, and the focus goes to what is left', async () => {
    const end = vi.spyOn(door, 'endSignIn').mockResolvedValue(undefined as never)
    const part = await show()
    await part.get('#sign-out-phone').trigger('click')
    await flushPromises()
    expect(dialog()).toContain('Sign out of this other browser?')
    expect(end).not.toHaveBeenCalled()
    await press('Sign out')
    expect(end).toHaveBeenCalledWith('phone')
    expect(part.findAll('li')).toHaveLength(2)
  })

  it('end all but this one; one that is refused stays, with the reason', async () => {
    const end = vi.spyOn(door, 'endSignIn').mockResolvedValueOnce(undefined as never)
    end.mockRejectedValueOnce(new RequestError(503, { code: 'store_unavailable', detail: 'the store is away' }))
    const part = await show()
    await part.get('#sign-out-others').trigger('click')
    await flushPromises()
    expect(dialog()).toContain('Sign out of 2 other browsers?')
    await press('Sign out everywhere else')
    expect(dialog()).toContain('That did not work: the store is away')
    expect(part.findAll('li')).toHaveLength(2)
    end.mockResolvedValue(undefined as never)
    await press('Sign out everywhere else')
    expect(end.mock.calls.map(([id]) => id)).toEqual(['phone', 'work', 'work'])
    expect(part.text()).toContain('You are signed in nowhere else.')
    expect(politeText.value).toContain('You are signed in only here')
  })

  it('are asked for again where they did not come', async () => {
    vi.spyOn(door, 'signIns').mockRejectedValueOnce(new RequestError(0, { code: 'offline' }))
    const part = await show()
    expect(part.get('[role=alert]').text()).toContain('The server does not answer.')
    await part.get('[role=alert] button').trigger('click')
    await flushPromises()
    expect(part.find('[role=alert]').exists()).toBe(false)
    expect(part.findAll('li')).toHaveLength(3)
    expect(document.activeElement?.textContent).toBe('Where you are signed in')
  })
})

describe('the password', () => {
  async function show(hasPassword: boolean) {
    vi.spyOn(gestures, 'passkeys').mockResolvedValue({ items: [], hasPassword })
    const part = mount(MyPassword, { global: { plugins: [i18n] }, attachTo: document.body })
    await flushPromises()
    return part
  }

  it('is changed by whoever knows the old one', async () => {
    const change = vi.spyOn(door, 'changePassword').mockRejectedValueOnce(new RequestError(400, { code: 'invalid_arguments', detail: 'no', errors: [{ field: 'old', message: 'no' }] } as never))
    const part = await show(true)
    await part.get('[name=old-password]').setValue('wrong')
    await part.get('[name=new-password]').setValue('a new long password')
    await part.get('form').trigger('submit')
    await flushPromises()
    expect(part.get('[role=alert]').text()).toBe('This is not your current password.')
    expect(part.get('[name=old-password]').attributes('aria-invalid')).toBe('true')
    expect(document.activeElement).toBe(part.get('[name=old-password]').element)
    expect(part.emitted('changed')).toBeUndefined()
    change.mockResolvedValueOnce(undefined as never)
    await part.get('[name=old-password]').setValue('the old one')
    await part.get('form').trigger('submit')
    await flushPromises()
    expect(change).toHaveBeenLastCalledWith({ old: 'the old one', new: 'a new long password' })
    expect(part.text()).toContain('You are signed out of every other browser.')
    expect(part.find('[role=alert]').exists()).toBe(false)
    expect(part.emitted('changed')).toHaveLength(1)
    expect(part.get<HTMLInputElement>('[name=new-password]').element.value).toBe('')
  })

  it('is set without an old one by whoever has none, and changed from then on', async () => {
    const change = vi.spyOn(door, 'changePassword').mockResolvedValue(undefined as never)
    const part = await show(false)
    expect(part.get('h2').text()).toBe('Set a password')
    expect(part.find('[name=old-password]').exists()).toBe(false)
    await part.get('[name=new-password]').setValue('a new long password')
    await part.get('form').trigger('submit')
    await flushPromises()
    expect(change).toHaveBeenCalledWith({ new: 'a new long password' })
    expect(part.get('h2').text()).toBe('Password')
  })

  it.each([
    [429, 'Too many attempts. Wait a minute, then try again.'],
    [0, 'Your password was not changed: The server does not answer.'],
    [400, 'Your password was not changed: it is too long'],
  ])('stays where the server refuses (%i)', async (status, words) => {
    vi.spyOn(door, 'changePassword').mockRejectedValue(new RequestError(status, { code: 'x', detail: 'it is too long' }))
    const part = await show(true)
    await part.get('form').trigger('submit')
    await flushPromises()
    expect(part.get('[role=alert]').text()).toBe(words)
  })
})
