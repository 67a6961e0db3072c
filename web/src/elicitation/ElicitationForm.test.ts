import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { i18n } from '@/locales'
import * as requests from '@/wire/request'
import ElicitationForm from './ElicitationForm.vue'
import ElicitationPage from './ElicitationPage.vue'
import { addressParts, contentOf, draftOf, fieldsOf, hasForeignLetters, problemAt } from './fields'

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
  expect(form.text()).toContain('post asks you')
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

describe('ElicitationPage', () => {
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
    expect(card.findAll('button').map((button) => button.text())).toEqual(['I am done', 'Cancel'])
    await card.find('button').trigger('click')
    expect(sent).toHaveBeenCalledWith('post', '/api/sessions/{id}/elicitations', { path: { id: 'ses_1' }, body: { elicitationId: 'elc_1', action: 'accept' } })
  })

  test('a name with letters that look like others is told', () => {
    expect(page({ url: 'https://xn--pypal-4ve.example/' }).text()).toContain('letters that look like others')
    expect(page().text()).not.toContain('letters that look like others')
  })
})

describe('address', () => {
  test('the host stands out, and what only looks like one does not', () => {
    const check = (address: string, host: string) => {
      const parts = addressParts(address)
      expect(parts.host).toBe(host)
      expect(parts.before + parts.host + parts.after).toBe(address)
    }
    check('https://a.example/bank.example?x=1#y', 'a.example')
    check('http://127.0.0.1:80/', '127.0.0.1')
    check('http://127.0.0.1:81/', '127.0.0.1:81')
    check('https://bank.example.evil.example/', 'bank.example.evil.example')
    check('no address', '')
  })

  test('names with letters of other alphabets are told', () => {
    expect(hasForeignLetters('xn--pypal-4ve.example')).toBe(true)
    expect(hasForeignLetters('paypal.example')).toBe(false)
  })
})

describe('fields', () => {
  const schema = {
    type: 'object',
    properties: {
      zip: { type: 'string', title: 'Zip code', maxLength: 5 },
      mail: { type: 'string', format: 'email' },
      age: { type: 'integer', minimum: 18, default: 20 },
      sure: { type: 'boolean', default: true },
      colour: { type: 'string', oneOf: [{ const: 'r', title: 'Red' }, { const: 'b', title: 'Blue' }] },
      old: { type: 'string', enum: ['a', 'b'], enumNames: ['First', 'Second'] },
      tags: { type: 'array', items: { anyOf: [{ const: 't', title: 'Tag' }] }, default: ['t'] },
      apiKey: { type: 'string' },
    },
    required: ['zip'],
  }
  const order = ['zip', 'mail', 'age', 'sure', 'colour', 'old', 'tags', 'apiKey', 'gone']

  test('fields come in the order of the server, with its titles and choices', () => {
    const fields = fieldsOf({ schema, order })
    expect(fields.map(({ kind }) => kind)).toEqual(['text', 'text', 'number', 'boolean', 'one', 'one', 'several', 'text'])
    expect(fields[0]).toMatchObject({ label: 'Zip code', isRequired: true, isSecret: false })
    expect(fields[1]).toMatchObject({ label: 'mail', inputType: 'email', isRequired: false })
    expect(fields[4]?.options).toEqual([{ value: 'r', label: 'Red' }, { value: 'b', label: 'Blue' }])
    expect(fields[5]?.options).toEqual([{ value: 'a', label: 'First' }, { value: 'b', label: 'Second' }])
    expect(fields[7]?.isSecret).toBe(true)
  })

  test('what nobody filled in is left out, and numbers are numbers', () => {
    const fields = fieldsOf({ schema, order })
    const draft = draftOf(fields)
    expect(contentOf(fields, draft)).toEqual({ age: 20, sure: true, tags: ['t'] })
    expect(contentOf(fields, { ...draft, zip: '12345', age: 'many', colour: 'b', tags: [] })).toEqual({ zip: '12345', age: 'many', sure: true, colour: 'b' })
  })

  test('a refusal stands at the field that it names', () => {
    const fields = fieldsOf({ schema, order })
    expect(problemAt(fields, '`zip`: too long')).toEqual({ field: 'zip', text: 'too long' })
    expect(problemAt(fields, '`more`: the form has no such field')).toBeNull()
    expect(problemAt(fields, '')).toBeNull()
  })
})
