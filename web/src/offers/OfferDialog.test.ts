import { mount, flushPromises } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { RequestError } from '@/wire/request'
import { door, promptEntries, resourceEntries } from './entries'
import OfferDialog from './OfferDialog.vue'

const SERVER = { server: 'lib', listed: true, problems: [], canComplete: false }
const NOTE = { id: 'a'.repeat(64), name: 'note', mediaType: 'text/plain', bytes: 5, width: null, height: null, source: { server: 'lib', uri: 'demo://note' } }
const RESOURCES = resourceEntries([{ ...SERVER, description: null, resources: [{ name: 'note', title: 'The note', description: null, mimeType: null, size: null, uri: 'demo://note' }], templates: [] }])
const BLANK = { name: 'language', title: null, description: null, required: true }
const PROMPTS = promptEntries([{ ...SERVER, prompts: [{ name: 'review', title: null, description: 'Looks', arguments: [BLANK] }] }])

beforeEach(() => {
  setActivePinia(createPinia())
  vi.restoreAllMocks()
  useSession().id = 'ses_1'
})

function open([entry]: typeof RESOURCES) {
  if (!entry) throw new Error('there is no entry')
  return mount(OfferDialog, { props: { entry }, global: { plugins: [i18n] }, attachTo: document.body })
}

it('reads a resource at once and gives it, without taking the focus', async () => {
  const read = vi.spyOn(door, 'read').mockResolvedValue({ items: [NOTE] })
  const before = document.activeElement
  const dialog = open(RESOURCES)
  await flushPromises()
  expect(read).toHaveBeenCalledWith('ses_1', 'lib', 'demo://note')
  expect(dialog.emitted('take')).toEqual([['', [NOTE]]])
  expect(document.activeElement).toBe(before)
})

it('says why a resource was not read', async () => {
  vi.spyOn(door, 'read').mockRejectedValue(new RequestError(502, { code: 'tool_failed', detail: 'the server is down' }))
  const dialog = open(RESOURCES)
  await flushPromises()
  expect(dialog.get('[role=alert]').text()).toContain('the server is down')
  expect(dialog.emitted('update:busy')?.at(-1)).toEqual([false])
  await dialog.trigger('keydown', { key: 'Escape' })
  expect(dialog.emitted('leave')).toHaveLength(1)
})

it('asks for the arguments of a prompt, shows it, and puts it into the message only then', async () => {
  const given = { description: null, messages: [{ role: 'user', text: '<b>Review</b> my Rust', attachment: null, resource: null }] }
  const prompt = vi.spyOn(door, 'prompt').mockResolvedValue(given)
  const dialog = open(PROMPTS)
  await flushPromises()
  await dialog.get('.form').trigger('keydown', { key: 'Enter' })
  await flushPromises()
  expect(dialog.get('[role=alert]').text()).toContain('language')
  await dialog.get('.form input').setValue('Rust')
  await dialog.get('.form').trigger('keydown', { key: 'Enter' })
  await flushPromises()
  expect(prompt).toHaveBeenCalledWith('ses_1', 'lib', 'review', { language: 'Rust' })
  expect(dialog.get('pre').text()).toContain('<b>Review</b>')
  expect(dialog.emitted('take')).toBeUndefined()
  await dialog.get('.ways button').trigger('click')
  expect(dialog.emitted('take')).toEqual([['<b>Review</b> my Rust', []]])
})
