import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { politeText } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import MailSwitch from './MailSwitch.vue'
import { outside, type Webhook } from './outside'
import WebhookList from './WebhookList.vue'

const AT = '2026-03-01T12:00:00Z'
let items: Webhook[]

function hook(id: string, more: Partial<Webhook> = {}): Webhook {
  return {
    id,
    url: `https://hooks.example/${id}`,
    tellsDecided: false,
    createdAt: AT,
    lastAt: null,
    lastStatus: null,
    lastError: null,
    failingSince: null,
    disabledAt: null,
    ...more,
  }
}

beforeEach(() => {
  items = []
  vi.spyOn(outside, 'webhooks').mockImplementation(async () => ({ items: [...items] }))
})
afterEach(() => vi.restoreAllMocks())

async function show() {
  const part = mount(WebhookList)
  await flushPromises()
  return part
}

it('says of each address how telling it went last', async () => {
  const lastError = 'the answer was 500'
  items = [
    hook('1'),
    hook('2', { lastAt: AT, lastStatus: 204, tellsDecided: true }),
    hook('3', { lastAt: AT, lastError, failingSince: AT }),
    hook('4', { lastAt: AT, lastError, failingSince: AT, disabledAt: AT }),
  ]
  const rows = (await show()).findAll('li').map((row) => row.get('.hook').text())
  expect(rows[0]).toContain('Nothing sent yet.')
  expect(rows[1]).toMatch(/Last accepted .*2026.*Decisions are sent too/)
  expect(rows[2]).toMatch(/Every attempt has failed since .*2026.*: the answer was 500/)
  expect(rows[3]).toMatch(/Switched off .*2026.*: the answer was 500/)
})

it('shows the secret of a new one once, to be copied', async () => {
  const add = vi.spyOn(outside, 'addWebhook').mockImplementation(async (url, tellsDecided) => {
    const webhook = hook('1', { url, tellsDecided })
    items.push(webhook)
    return { webhook, secret: 'whsec_once' }
  })
  const part = await show()
  await part.get('input[name=webhook]').setValue(' https://hooks.example/x ')
  await part.get('input[type=checkbox]').setValue(true)
  await part.get('form').trigger('submit')
  await flushPromises()
  expect(add).toHaveBeenCalledWith('https://hooks.example/x', true)
  expect(part.get<HTMLInputElement>('.made input').element.value).toBe('whsec_once')
  expect(part.findAll('li')).toHaveLength(1)
  document.execCommand = vi.fn(() => true)
  await part.get('.made button').trigger('click')
  await flushPromises()
  expect(politeText.value).toContain('Secret copied')
  part.unmount()
  expect((await show()).html()).not.toContain('whsec_')
})

it('tries one and says what came back, and removes one', async () => {
  items = [hook('1')]
  const test = vi.spyOn(outside, 'testWebhook')
  test.mockResolvedValueOnce({ ok: false, status: 500, error: 'the answer was 500', durationMs: 3 })
  test.mockResolvedValueOnce({ ok: true, status: 204, error: null, durationMs: 12 })
  const part = await show()
  const [tries, removes] = part.findAll('li button')
  await tries?.trigger('click')
  await flushPromises()
  expect(part.get('.hook').text()).toContain('Not accepted: the answer was 500')
  await tries?.trigger('click')
  await flushPromises()
  expect(part.get('.hook').text()).toContain('Accepted with status 204 after 12 ms')
  const remove = vi.spyOn(outside, 'deleteWebhook').mockImplementation(async () => {
    items = []
    return undefined
  })
  await removes?.trigger('click')
  await flushPromises()
  expect(remove).toHaveBeenCalledWith('1')
  expect(part.find('li').exists()).toBe(false)
})

it('says why an address is refused, and keeps it to be mended', async () => {
  const detail = '`10.0.0.1` is at a private or reserved address'
  vi.spyOn(outside, 'addWebhook').mockRejectedValue(new RequestError(400, { code: 'invalid_arguments', detail }))
  const part = await show()
  await part.get('input[name=webhook]').setValue('http://10.0.0.1/')
  await part.get('form').trigger('submit')
  await flushPromises()
  expect(part.get('[role=alert]').text()).toContain(detail)
  expect(part.get<HTMLInputElement>('input[name=webhook]').element.value).toBe('http://10.0.0.1/')
  expect(part.find('.made').exists()).toBe(false)
})

describe('the mail', () => {
  afterEach(() => vi.restoreAllMocks())

  async function show(isAvailable: boolean) {
    vi.spyOn(outside, 'mail').mockResolvedValue({ isAvailable, address: null, isOn: false })
    const part = mount(MailSwitch)
    await flushPromises()
    return part
  }

  it('offers nothing where the server sends no mail', async () => {
    expect((await show(false)).find('section').exists()).toBe(false)
  })

  it('keeps the address and that mail is wanted', async () => {
    const set = vi.spyOn(outside, 'setMail')
    set.mockImplementation(async (address, isOn) => ({ isAvailable: true, address, isOn }))
    const part = await show(true)
    const address = part.get<HTMLInputElement>('input[name=mail]')
    expect(address.element.required).toBe(false)
    await part.get('input[type=checkbox]').setValue(true)
    expect(address.element.required).toBe(true)
    await address.setValue('ana@sepal.example ')
    await part.get('form').trigger('submit')
    await flushPromises()
    expect(set).toHaveBeenCalledWith('ana@sepal.example', true)
    expect(part.find('[role=alert]').exists()).toBe(false)
  })

  it('says why it was not kept', async () => {
    const detail = '`address` is one mail address'
    vi.spyOn(outside, 'setMail').mockRejectedValue(new RequestError(400, { code: 'invalid_arguments', detail }))
    const part = await show(true)
    await part.get('form').trigger('submit')
    await flushPromises()
    expect(part.get('[role=alert]').text()).toContain(detail)
  })
})
