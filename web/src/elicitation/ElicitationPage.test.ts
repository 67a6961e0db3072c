import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, expect, test, vi } from 'vitest'
import { i18n } from '@/locales'
import * as requests from '@/wire/request'
import ElicitationPage from './ElicitationPage.vue'

const asked = {
  mode: 'url' as const,
  elicitationId: 'elc_1',
  callId: 'call_1_0',
  server: 'post',
  message: 'Pay for the stamp',
  url: 'https://pay.example/stamp?n=1',
  opened: false,
  askedAt: '2026-01-01T00:00:00Z',
}

afterEach(() => vi.restoreAllMocks())

function page(change: Partial<typeof asked> = {}) {
  return mount(ElicitationPage, { props: { sessionId: 'ses_1', asked: { ...asked, ...change } }, global: { plugins: [i18n] } })
}

test('a page shows its whole address with the host, and a click alone opens it in a tab of its own', async () => {
  const sent = vi.spyOn(requests, 'request').mockResolvedValue(undefined as never)
  const card = page()
  expect(card.find('.asked-address').text()).toBe('https://pay.example/stamp?n=1')
  expect(card.find('strong').text()).toBe('pay.example')
  const link = card.find('a')
  expect(link.attributes()).toMatchObject({ href: asked.url, target: '_blank', referrerpolicy: 'no-referrer' })
  expect(link.attributes('rel')).toContain('noopener')
  expect(sent).not.toHaveBeenCalled()
  expect(card.findAll('button').map((button) => button.text())).toEqual(['Decline'])
  // No page of the test's own goes there.
  link.element.addEventListener('click', (event) => event.preventDefault())
  await link.trigger('click')
  await flushPromises()
  expect(sent).toHaveBeenCalledWith('post', '/api/sessions/{id}/elicitations', { path: { id: 'ses_1' }, body: { elicitationId: 'elc_1', action: 'open' } })
})

test('a page that was opened is done by the word of the person', async () => {
  const sent = vi.spyOn(requests, 'request').mockResolvedValue(undefined as never)
  const card = page({ opened: true })
  expect(card.findAll('button').map((button) => button.text())).toEqual(['I am done there', 'Leave it'])
  await card.find('button').trigger('click')
  expect(sent).toHaveBeenCalledWith('post', '/api/sessions/{id}/elicitations', { path: { id: 'ses_1' }, body: { elicitationId: 'elc_1', action: 'accept' } })
})

test('a name with letters that look like others is told', () => {
  expect(page({ url: 'https://xn--pypal-4ve.example/' }).text()).toContain('can look like others')
  expect(page().text()).not.toContain('can look like others')
})
