import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { i18n } from '@/locales'
import { door } from '@/offers/door'
import { useSession } from '@/session/store/session'
import { RequestError } from '@/wire/request'
import ComposerForm from './ComposerForm.vue'

const SERVER = { server: 'lib', listed: true, problems: [], canComplete: false }
const RESOURCE = { description: null, mimeType: null, size: null }
const RESOURCES = [
  { ...RESOURCE, name: 'other', title: 'Other', uri: 'demo://other' },
  { ...RESOURCE, name: 'note', title: 'The note', uri: 'demo://note' },
]
const NOTE = { id: 'a'.repeat(64), name: 'note', mediaType: 'text/plain', bytes: 5, width: null, height: null, source: { server: 'lib', uri: 'demo://note' } }

let form: VueWrapper<InstanceType<typeof ComposerForm>>
let send: ReturnType<typeof vi.spyOn>

beforeEach(async () => {
  vi.restoreAllMocks()
  setActivePinia(createPinia())
  useSession().id = 'ses_1'
  send = vi.spyOn(useSession(), 'send').mockReturnValue(null)
  // The parts that come late are at hand, as they are after their first use.
  await Promise.all([import('@/offers/CompletionList.vue'), import('@/offers/OfferDialog.vue')])
  form = mount(ComposerForm, { global: { plugins: [i18n] }, attachTo: document.body })
  form.get('textarea').element.focus()
})
afterEach(() => {
  form.unmount()
  localStorage.clear()
})

function offer(resources: typeof RESOURCES) {
  vi.spyOn(door, 'prompts').mockResolvedValue({ items: [] })
  return vi.spyOn(door, 'resources').mockResolvedValue({ items: [{ ...SERVER, description: null, resources, templates: [] }] })
}

const field = () => form.get<HTMLTextAreaElement>('textarea')
const options = () => form.findAll('[role=option]').map((option) => option.text())

/** Types as a browser does: each character goes where the focus is. */
async function type(words: string) {
  for (const data of words) {
    const area = document.activeElement as HTMLTextAreaElement
    expect(area).toBe(field().element)
    await press(data)
    area.value += data
    area.dispatchEvent(new InputEvent('input', { data, inputType: 'insertText' }))
    await flushPromises()
  }
}

async function press(key: string): Promise<KeyboardEvent> {
  const event = new KeyboardEvent('keydown', { key, cancelable: true, bubbles: true })
  document.activeElement?.dispatchEvent(event)
  await flushPromises()
  await nextTick()
  return event
}

it('lists what fits the word behind the sign while the field keeps focus and text', async () => {
  offer(RESOURCES)
  await type('see @')
  expect(options()).toHaveLength(2)
  await type('no')
  expect(options()).toEqual([expect.stringContaining('The note')])
  expect(form.get(`#${field().attributes('aria-activedescendant')}`).attributes('aria-selected')).toBe('true')
  expect(form.get('[role=listbox]').attributes('id')).toBe(field().attributes('aria-controls'))
  await type('body')
  expect(options()).toEqual([])
  expect(field().attributes('aria-activedescendant')).toBeUndefined()
  expect(field().element.value).toBe('see @nobody')
})

it.each(['Enter', 'Tab'])('takes the marked entry with %s in place of its word', async (key) => {
  offer(RESOURCES)
  const read = vi.spyOn(door, 'read').mockResolvedValue({ items: [NOTE] })
  await type('see @')
  await press('ArrowDown')
  expect((await press(key)).defaultPrevented).toBe(true)
  expect(read).toHaveBeenCalledWith('ses_1', 'lib', 'demo://note')
  expect(field().element.value).toBe('see ')
  expect(form.text()).toContain('note')
  expect(send).not.toHaveBeenCalled()
})

it('closes with Escape, keeps every character, and stays closed for that word', async () => {
  offer(RESOURCES)
  await type('see @n')
  await press('Escape')
  expect(options()).toEqual([])
  await type('ote')
  expect(options()).toEqual([])
  expect(field().element.value).toBe('see @note')
  await type(' @')
  expect(options()).toHaveLength(2)
})

it('keeps the word of an entry that cannot be read, and says why', async () => {
  offer(RESOURCES)
  vi.spyOn(door, 'read').mockRejectedValue(new RequestError(502, { code: 'tool_failed', detail: 'the server is down' }))
  await type('see @note')
  await press('Enter')
  expect(form.get('[role=alert]').text()).toContain('the server is down')
  expect(field().element.value).toBe('see @note')
  expect(document.activeElement).toBe(field().element)
})

it('leaves Enter and Tab alone where nothing is offered', async () => {
  offer([])
  await type('see @')
  expect(form.find('.completion').exists()).toBe(false)
  expect((await press('Tab')).defaultPrevented).toBe(false)
  await press('Enter')
  expect(send).toHaveBeenCalledWith('see @', [], [])
})

it('does not send while a chosen resource is being read, and does once it was left', async () => {
  offer(RESOURCES)
  vi.spyOn(door, 'read').mockReturnValue(new Promise(() => undefined))
  await type('see @note')
  await press('Enter')
  await press('Enter')
  expect(send).not.toHaveBeenCalled()
  await press('Escape')
  await press('Enter')
  expect(send).toHaveBeenCalledWith('see @note', [], [])
})
