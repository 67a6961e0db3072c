import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { RequestError } from '@/wire/request'
import { door, type Person, type Role } from './door'
import HandOverDialog from './HandOverDialog.vue'

function one(name: string, role: Role, more: Partial<Person> = {}): Person {
  return { id: `usr_${name}`, name, role, installationAdmin: false, disabled: false, serviceAccount: false, hasPassword: true, passkeys: 0, passkeyOnly: false, sessions: 0, createdAt: '2026-11-01T12:00:00Z', lastSeenAt: null, ...more }
}

const ben = one('ben', 'member', { disabled: true, sessions: 3 })

beforeEach(() => {
  setActivePinia(createPinia())
  vi.spyOn(door, 'everybody').mockResolvedValue([ben, one('cleo', 'admin'), one('dan', 'viewer'), one('eve', 'member', { disabled: true }), one('fay', 'member')])
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show() {
  mount(HandOverDialog, { props: { modelValue: ben }, global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  const select = document.querySelector('select')
  if (!select) throw new Error('no select')
  return select
}

async function handTo(select: HTMLSelectElement, id: string) {
  select.value = id
  select.dispatchEvent(new Event('change'))
  await flushPromises()
  document.querySelector('form')?.dispatchEvent(new Event('submit'))
  await flushPromises()
}

const shown = () => document.body.textContent ?? ''

it('offers those who may have sessions, and copies part by part', async () => {
  const handOver = vi.spyOn(door, 'handOver')
  handOver.mockResolvedValueOnce({ copied: 2, failed: [], next: 'ses_2' }).mockResolvedValueOnce({ copied: 1, failed: [], next: null })
  const select = await show()
  expect([...select.options].map(({ text }) => text)).toEqual(['Choose a person', 'cleo', 'fay'])
  await handTo(select, 'usr_fay')
  expect(handOver.mock.calls).toEqual([
    ['usr_ben', { to: 'usr_fay' }],
    ['usr_ben', { to: 'usr_fay', after: 'ses_2' }],
  ])
  expect(shown()).toContain('3 sessions copied for fay')
})

it('names what was not copied, and tries it again', async () => {
  const handOver = vi.spyOn(door, 'handOver')
  handOver.mockResolvedValueOnce({ copied: 2, failed: [{ session: 'ses_9', code: 'too_large', message: 'It is too long.' }], next: null })
  const select = await show()
  await handTo(select, 'usr_cleo')
  expect(shown()).toContain('1 session was not copied:')
  expect(shown()).toContain('It is too long.')
  handOver.mockResolvedValueOnce({ copied: 1, failed: [], next: null })
  const again = [...document.querySelectorAll('button')].find(({ textContent }) => textContent?.includes('Try these again'))
  expect(again).toBeTruthy()
  document.querySelector('form')?.dispatchEvent(new Event('submit'))
  await flushPromises()
  expect(shown()).toContain('3 sessions copied for cleo')
  expect(shown()).not.toContain('was not copied')
})

it('says why nothing was handed over', async () => {
  vi.spyOn(door, 'handOver').mockRejectedValue(new RequestError(403, { code: 'not_allowed', detail: 'You may not.' }))
  const select = await show()
  await handTo(select, 'usr_fay')
  expect(shown()).toContain('Not handed over: You may not.')
})
