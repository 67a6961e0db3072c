import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, expect, test, vi } from 'vitest'
import { i18n } from '@/locales'
import * as requests from '@/wire/request'
import ElicitationForm from './ElicitationForm.vue'

const asked = {
  mode: 'form' as const,
  elicitationId: 'elc_1',
  callId: 'call_1_0',
  server: 'post',
  message: 'Where **do** you \u202elive?',
  schema: { type: 'object', properties: { zip: { type: 'string' }, password: { type: 'string' } }, required: ['zip'] },
  order: ['zip', 'password'],
  askedAt: '2026-01-01T00:00:00Z',
}

afterEach(() => vi.restoreAllMocks())

test('a form shows the words of its server as they are, warns of secrets and sends what was typed', async () => {
  const sent = vi.spyOn(requests, 'request').mockResolvedValue(undefined as never)
  const form = mount(ElicitationForm, { props: { sessionId: 'ses_1', asked }, global: { plugins: [i18n] } })
  expect(form.text()).toContain('The server post asks you')
  expect(form.text()).toContain('Where **do** you')
  expect(form.text()).not.toContain('\u202e')
  expect(form.text()).toContain('must not ask')
  await form.find('input').setValue('12345')
  await form.find('form').trigger('submit')
  await flushPromises()
  const body = { elicitationId: 'elc_1', action: 'accept', content: { zip: '12345' } }
  expect(sent).toHaveBeenCalledWith('post', '/api/sessions/{id}/elicitations', { path: { id: 'ses_1' }, body })
})

test('a refusal is said, and the form can be sent again', async () => {
  const refusal = new requests.RequestError(400, { code: 'invalid_arguments', detail: '`zip`: too short' } as never)
  const sent = vi.spyOn(requests, 'request').mockRejectedValueOnce(refusal).mockResolvedValue(undefined as never)
  const form = mount(ElicitationForm, { props: { sessionId: 'ses_1', asked }, global: { plugins: [i18n] } })
  await form.find('form').trigger('submit')
  await flushPromises()
  expect(form.find('[role=alert]').text()).toBe('too short')
  const input = form.find('input')
  expect(input.attributes()).toMatchObject({ 'aria-invalid': 'true', 'aria-describedby': form.find('[role=alert]').attributes('id') })
  await form.findAll('button').at(1)?.trigger('click')
  expect(sent).toHaveBeenLastCalledWith('post', '/api/sessions/{id}/elicitations', { path: { id: 'ses_1' }, body: { elicitationId: 'elc_1', action: 'decline' } })
})
