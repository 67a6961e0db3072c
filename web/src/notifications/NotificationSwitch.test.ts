import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import NotificationSwitch from './NotificationSwitch.vue'
import { lookAtPermission, noteRefused, switchOff } from './setting'

let permission: NotificationPermission

beforeEach(() => {
  permission = 'default'
  vi.stubGlobal('isSecureContext', true)
  vi.spyOn(navigator, 'locks', 'get').mockReturnValue({} as LockManager)
  const notification = Object.defineProperty(() => {}, 'permission', { get: () => permission })
  vi.stubGlobal('Notification', Object.assign(notification, { requestPermission: () => Promise.resolve(permission) }))
  switchOff()
})
afterEach(() => {
  localStorage.clear()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

function show() {
  lookAtPermission()
  const part = mount(NotificationSwitch)
  return { part, box: part.get<HTMLInputElement>('input'), words: () => part.get('.secondary').text() }
}

it('is on when the browser was asked and said yes, and keeps that', async () => {
  const { part, box, words } = show()
  expect([box.element.checked, words()]).toEqual([false, 'Off. The browser asks once whether this address may.'])
  permission = 'granted'
  await box.setValue(true)
  await flushPromises()
  expect(box.element.checked).toBe(true)
  expect(words()).toMatch(/^On, in this browser/)
  expect(localStorage.getItem('sepal.notifications')).toBe('on')
  await box.setValue(false)
  expect(localStorage.getItem('sepal.notifications')).toBeNull()
  part.unmount()
})

it('stays off when the browser said no, and says where that is changed', async () => {
  const { part, box, words } = show()
  permission = 'denied'
  await box.setValue(true)
  await flushPromises()
  expect([box.element.checked, box.element.disabled]).toEqual([false, true])
  expect(words()).toMatch(/^This browser blocks/)
  permission = 'granted'
  document.dispatchEvent(new Event('visibilitychange'))
  await flushPromises()
  expect(box.element.disabled).toBe(false)
  part.unmount()
})

it('says that plain http has none, and a browser without them neither', async () => {
  vi.stubGlobal('isSecureContext', false)
  const plain = show()
  expect([plain.box.element.disabled, plain.words()]).toEqual([true, expect.stringContaining('plain http')])
  plain.part.unmount()
  vi.stubGlobal('isSecureContext', true)
  vi.stubGlobal('Notification', undefined)
  const without = show()
  expect([without.box.element.disabled, without.words()]).toEqual([true, 'This browser has no notifications for pages.'])
  without.part.unmount()
})

it('says that the browser showed none', async () => {
  permission = 'granted'
  const { part, box, words } = show()
  noteRefused()
  await flushPromises()
  expect([box.element.disabled, words()]).toEqual([true, 'This browser shows no notifications of a page.'])
  part.unmount()
})
