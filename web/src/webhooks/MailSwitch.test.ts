import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, expect, it, vi } from 'vitest'
import { RequestError } from '@/wire/request'
import MailSwitch from './MailSwitch.vue'
import { outside } from './outside'

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
