import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, expect, test, vi } from 'vitest'
import { i18n } from '@/locales'
import * as requests from '@/wire/request'
import type { SamplingItem } from '@/wire/types'
import SamplingCard from './SamplingCard.vue'

const asked: SamplingItem = {
  mode: 'sampling',
  elicitationId: 'elc_1',
  callId: 'call_1_0',
  server: 'post',
  message: '',
  askedAt: '2026-01-01T00:00:00Z',
  stage: 'requested',
  systemPrompt: 'Be \u202Ebrief',
  messages: [
    { role: 'user', text: '2 + 2?' },
    { role: 'assistant', text: '5' },
  ],
  maxTokens: 50,
  temperature: 0.5,
  stopSequences: ['END'],
  model: { provider: 'openai', model: 'gpt-x' },
  inputTokens: 12,
  digest: 'd1',
}

const answered: SamplingItem = { ...asked, stage: 'answered', digest: 'd2', answer: { text: 'It is 4', model: 'gpt-x', stopReason: 'maxTokens' } }

afterEach(() => vi.restoreAllMocks())

function card(item: SamplingItem) {
  return mount(SamplingCard, { props: { sessionId: 'ses_1', asked: item }, global: { plugins: [i18n] } })
}

function sent(body: Record<string, unknown>) {
  return ['post', '/api/sessions/{id}/elicitations', { path: { id: 'ses_1' }, body: { elicitationId: 'elc_1', ...body } }]
}

test('all that is asked is shown with everything hidden, and a yes names what was shown', async () => {
  const request = vi.spyOn(requests, 'request').mockResolvedValue(undefined as never)
  const shown = card(asked)
  expect(shown.text()).toContain('post wants to ask a model')
  for (const part of ['Be', '2 + 2?', '5', 'END', 'openai/gpt-x', '12 tokens', 'at most 50', 'Temperature 0.5']) expect(shown.text()).toContain(part)
  expect(shown.text()).not.toContain('\u202E')
  expect(shown.findAll('button').map((button) => button.text())).toEqual(['Ask the model', 'Decline'])
  await shown.find('button').trigger('click')
  await flushPromises()
  expect(request).toHaveBeenCalledWith(...sent({ action: 'accept', digest: 'd1', review: true }))
})

test('a person may let the server have the answer unread, or say no', async () => {
  const request = vi.spyOn(requests, 'request').mockResolvedValue(undefined as never)
  const shown = card(asked)
  await shown.find('input[type=checkbox]').setValue(false)
  await shown.find('button').trigger('click')
  await flushPromises()
  expect(request).toHaveBeenLastCalledWith(...sent({ action: 'accept', digest: 'd1', review: false }))
  await shown.findAll('button').at(-1)?.trigger('click')
  expect(request).toHaveBeenLastCalledWith(...sent({ action: 'decline' }))
})

test('while the model is asked it can be stopped', async () => {
  const request = vi.spyOn(requests, 'request').mockResolvedValue(undefined as never)
  const shown = card({ ...asked, stage: 'asking', digest: null })
  expect(shown.find('[role=status]').text()).toContain('Asking openai/gpt-x…')
  expect(shown.findAll('button').map((button) => button.text())).toEqual(['Stop'])
  await shown.find('button').trigger('click')
  expect(request).toHaveBeenCalledWith(...sent({ action: 'decline' }))
})

test('the answer is shown before the server gets it, and a refusal of Sepal is told', async () => {
  const request = vi.spyOn(requests, 'request').mockRejectedValue(new Error('x'))
  const shown = card(answered)
  expect(shown.text()).toContain('It is 4')
  expect(shown.text()).toContain('cut at its limit')
  expect(shown.find('details').text()).toContain('2 + 2?')
  expect(shown.findAll('button').map((button) => button.text())).toEqual(['Send to post', 'Do not send'])
  await shown.find('button').trigger('click')
  await flushPromises()
  expect(request).toHaveBeenCalledWith(...sent({ action: 'accept', digest: 'd2' }))
  expect(shown.find('[role=alert]').text()).toContain('Not sent')
})
