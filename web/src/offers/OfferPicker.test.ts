import { mount, flushPromises } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { RequestError } from '@/wire/request'
import { door } from './door'
import OfferPicker from './OfferPicker.vue'

const RESOURCE = { name: 'note', title: 'The note', description: null, mimeType: null, size: null }
const SERVER = { server: 'lib', listed: true, problems: [], canComplete: false }
const NOTE = { id: 'a'.repeat(64), name: 'note', mediaType: 'text/plain', bytes: 5, width: null, height: null, source: { server: 'lib', uri: 'demo://note' } }

beforeEach(() => {
  setActivePinia(createPinia())
  vi.restoreAllMocks()
  useSession().id = 'ses_1'
})

function open(kind: 'resources' | 'prompts') {
  return mount(OfferPicker, { props: { kind }, global: { plugins: [i18n] }, attachTo: document.body })
}

it('finds a resource by keyboard, reads it and gives what was read', async () => {
  vi.spyOn(door, 'resources').mockResolvedValue({
    items: [{ ...SERVER, description: null, resources: [{ ...RESOURCE, uri: 'demo://other', title: 'Other' }, { ...RESOURCE, uri: 'demo://note' }], templates: [] }],
  })
  const read = vi.spyOn(door, 'read').mockResolvedValue({ items: [NOTE] })
  const picker = open('resources')
  await flushPromises()
  const field = picker.get('[role=combobox]')
  expect(document.activeElement).toBe(field.element)
  await field.trigger('keydown', { key: 'ArrowDown' })
  expect(picker.get('[aria-selected=true]').text()).toContain('The note')
  await field.trigger('keydown', { key: 'Enter' })
  await flushPromises()
  expect(read).toHaveBeenCalledWith('ses_1', 'lib', 'demo://note')
  expect(picker.emitted('take')).toEqual([['', [NOTE]]])
})

it('says at the place why a resource was not read, and lets go on', async () => {
  vi.spyOn(door, 'resources').mockResolvedValue({ items: [{ ...SERVER, description: null, resources: [{ ...RESOURCE, uri: 'demo://note' }], templates: [] }] })
  vi.spyOn(door, 'read').mockRejectedValue(new RequestError(502, { code: 'tool_failed', detail: 'the server is down' }))
  const picker = open('resources')
  await flushPromises()
  await picker.get('[role=combobox]').trigger('keydown', { key: 'Enter' })
  await flushPromises()
  expect(picker.get('[role=alert]').text()).toContain('the server is down')
  expect(picker.find('[role=listbox]').exists()).toBe(true)
  await picker.trigger('keydown', { key: 'Escape' })
  expect(picker.emitted('leave')).toHaveLength(1)
})

it('asks for what a prompt needs, shows it, and puts it into the message only then', async () => {
  const blank = { name: 'language', title: null, description: null, required: true }
  vi.spyOn(door, 'prompts').mockResolvedValue({ items: [{ ...SERVER, prompts: [{ name: 'review', title: null, description: 'Looks', arguments: [blank] }] }] })
  const given = { description: null, messages: [{ role: 'user', text: '<b>Review</b> my Rust', attachment: null, resource: null }] }
  const prompt = vi.spyOn(door, 'prompt').mockResolvedValue(given)
  const picker = open('prompts')
  await flushPromises()
  await picker.get('[role=combobox]').trigger('keydown', { key: 'Enter' })
  await flushPromises()
  await picker.get('.form').trigger('keydown', { key: 'Enter' })
  await flushPromises()
  expect(picker.get('[role=alert]').text()).toContain('language')
  await picker.get('.form input').setValue('Rust')
  await picker.get('.form').trigger('keydown', { key: 'Enter' })
  await flushPromises()
  expect(prompt).toHaveBeenCalledWith('ses_1', 'lib', 'review', { language: 'Rust' })
  expect(picker.get('pre').text()).toContain('<b>Review</b>')
  expect(picker.emitted('take')).toBeUndefined()
  await picker.get('.ways button').trigger('click')
  expect(picker.emitted('take')).toEqual([['<b>Review</b> my Rust', []]])
})
