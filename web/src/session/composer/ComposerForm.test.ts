import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { recall } from '@/browser/storage'
import { i18n } from '@/locales'
import { door } from '@/offers/entries'
import { EMPTY } from '@/session/conversation/conversation'
import { withRunning } from '@/session/conversation/streaming'
import { useSession } from '@/session/store/session'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import { newest, no, settled, sockets, systemReady } from '@/wire/testing'
import type { Attachment } from '@/wire/types'
import { upload } from '@/wire/upload'
import ComposerForm from './ComposerForm.vue'

vi.mock('@/wire/upload', () => ({
  upload: vi.fn(),
  attachmentAddress: (session: string, id: string) => `/api/sessions/${session}/attachments/${id}`,
}))

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

beforeEach(() => setActivePinia(createPinia()))

afterEach(() => localStorage.clear())

it('keeps what was typed while it is not known, or no longer, who types', async () => {
  const person = usePerson()
  const page = mount(ComposerForm, { attachTo: document.body, global: { plugins: [i18n] } })
  const field = page.get('textarea')
  await field.setValue('half a sentence')
  person.me = { user: { id: 'ana' } } as never
  await nextTick()
  expect(field.element.value).toBe('half a sentence')
  expect([recall('draft..new'), recall('draft.ana.new')]).toEqual([null, 'half a sentence'])
  person.lost()
  await nextTick()
  expect(field.element.value).toBe('half a sentence')
  person.me = { user: { id: 'bo' } } as never
  await nextTick()
  expect(field.element.value).toBe('')
  expect(recall('draft.ana.new')).toBe('half a sentence')
  page.unmount()
})

it('stops by Escape twice, never by Escape that is held', async () => {
  const session = useSession()
  session.conversation = withRunning(EMPTY, { turn: 1, iteration: 1, attempt: 1, phase: 'model', text: '', reasoning: '', since: '2026-11-23T10:00:00Z' })
  const stop = vi.spyOn(session, 'stop').mockResolvedValue({ ok: true })
  const page = mount(ComposerForm, { attachTo: document.body, global: { plugins: [i18n] } })
  const field = page.get('textarea')
  await field.trigger('keydown', { key: 'Escape' })
  for (let n = 0; n < 5; n++) await field.trigger('keydown', { key: 'Escape', repeat: true })
  expect(stop).not.toHaveBeenCalled()
  await field.trigger('keydown', { key: 'Escape' })
  expect(stop).toHaveBeenCalledOnce()
  page.unmount()
})

describe('completion', () => {
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
})

describe('files', () => {


  const ana = { user: { id: 'ana', name: 'Ana', role: 'member', installationAdmin: false }, csrfToken: 'x', installation: { name: 'Sepal', version: '1.0.0' } } as Me
  const cat: Attachment = { id: 'c4', name: 'cat.png', mediaType: 'image/png', bytes: 12, width: 2, height: 1 }

  let form: VueWrapper<InstanceType<typeof ComposerForm>>
  let session: ReturnType<typeof useSession>

  beforeEach(() => {
    vi.useFakeTimers()
    vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [], nextCursor: null })
    vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
    vi.stubGlobal('URL', Object.assign(URL, { createObjectURL: () => 'blob:own', revokeObjectURL: () => undefined }))
    sockets.length = 0
    setActivePinia(createPinia())
    usePerson().enter(ana)
    session = useSession()
  })
  afterEach(() => {
    form.unmount()
    session.close()
    localStorage.clear()
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })

  function show(): void {
    const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
    form = mount(ComposerForm, { global: { plugins: [i18n, router] }, attachTo: document.body })
  }

  async function give(...names: string[]): Promise<void> {
    const input = form.get<HTMLInputElement>('input[type=file]')
    const files = names.map((name) => new File(['x'], name, { type: 'image/png' }))
    Object.defineProperty(input.element, 'files', { value: files, configurable: true })
    await input.trigger('change')
    await settled()
  }

  const chips = () => form.findAll('.chips li')
  const submit = () => form.get<HTMLButtonElement>('button[type=submit]').element

  it('uploads what is given, sends it without a word, and keeps it with the message', async () => {
    let done: (attachment: Attachment) => void = () => undefined
    vi.mocked(upload).mockReturnValueOnce(new Promise((resolve) => (done = resolve)))
    session.open('s1')
    show()
    await newest().ready({ sessionId: 's1' })
    await give('cat.png')
    expect(chips()[0]?.find('progress').exists()).toBe(true)
    expect(submit().disabled).toBe(true)
    done(cat)
    await settled()
    expect(chips()[0]?.get('img').attributes('src')).toBe('blob:own')
    expect(submit().disabled).toBe(false)
    await form.get('form').trigger('submit')
    await settled()
    expect(newest().last.payload).toMatchObject({ text: '', attachments: ['c4'] })
    expect(session.unsent[0]?.attachments).toEqual([cat])
    expect(chips()).toHaveLength(0)
  })

  it('says why a file was not attached, and sends the rest', async () => {
    vi.mocked(upload)
      .mockRejectedValueOnce(new RequestError(413, { code: 'too_large', detail: 'a file may have 20 MiB' }))
      .mockResolvedValueOnce(cat)
    session.open('s1')
    show()
    await newest().ready({ sessionId: 's1' })
    await give('huge.png', 'cat.png')
    expect(chips()[0]?.text()).toContain('a file may have 20 MiB')
    await chips()[0]?.get('button').trigger('click')
    expect(chips().map((chip) => chip.get('.name').text())).toEqual(['cat.png'])
  })

  it('keeps what was uploaded with the draft', async () => {
    vi.mocked(upload).mockResolvedValueOnce(cat)
    session.open('s1')
    show()
    await newest().ready({ sessionId: 's1' })
    await give('cat.png')
    form.unmount()
    show()
    expect(chips().map((chip) => chip.get('.name').text())).toEqual(['cat.png'])
    expect(chips()[0]?.get('img').attributes('src')).toBe('/api/sessions/s1/attachments/c4')
  })
})

describe('the draft', () => {


  let form: VueWrapper<InstanceType<typeof ComposerForm>>
  let session: ReturnType<typeof useSession>

  const ana = { user: { id: 'ana', name: 'Ana', role: 'member', installationAdmin: false }, csrfToken: 'x', installation: { name: 'Sepal', version: '1.0.0' } } as Me

  beforeEach(() => {
    vi.useFakeTimers()
    vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [], nextCursor: null })
    vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
    sockets.length = 0
    setActivePinia(createPinia())
    usePerson().enter(ana)
    session = useSession()
  })
  afterEach(() => {
    form.unmount()
    session.close()
    localStorage.clear()
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })

  function show(): void {
    // Buttons may be links, so they ask where they are.
    const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
    form = mount(ComposerForm, { global: { plugins: [i18n, router] }, attachTo: document.body })
  }

  const field = () => form.get<HTMLTextAreaElement>('textarea')
  const text = () => field().element.value
  const refusal = () => form.find('.refused')

  async function type(words: string): Promise<void> {
    await field().setValue(words)
    await nextTick()
  }

  async function enter(): Promise<void> {
    await field().trigger('keydown', { key: 'Enter' })
    await settled()
  }

  async function opened(id = 'ses_1'): Promise<void> {
    session.open(id)
    await newest().ready({ sessionId: id })
  }

  describe('a draft', () => {
    it('stays in the field and in its place when the sign-in is lost while it is written', async () => {
      await opened()
      show()
      await type('half a')
      usePerson().lost()
      await nextTick()
      expect(text()).toBe('half a')
      await type('half a thought')
      form.unmount()
      usePerson().enter(ana)
      show()
      expect(text()).toBe('half a thought')
    })

    it('goes with a new session that gets its name, and not into another that is opened', async () => {
      session.open(null)
      await newest().ready({ sessionId: 'ses_new' })
      show()
      await type('first')
      await enter()
      await type('second')
      await newest().last.answer({ ok: true, seq: 1 })
      expect(session.id).toBe('ses_new')
      expect(text()).toBe('second')
      form.unmount()
      show()
      expect(text()).toBe('second')

      session.open(null)
      await nextTick()
      await type('for a new one')
      await opened('ses_2')
      await nextTick()
      expect(text()).toBe('')
      session.open(null)
      await nextTick()
      expect(text()).toBe('for a new one')
    })

    it('is kept when the person becomes known only later', async () => {
      usePerson().lost()
      setActivePinia(createPinia())
      session = useSession()
      session.open('ses_1')
      show()
      await type('early')
      usePerson().enter(ana)
      await nextTick()
      expect(text()).toBe('early')
      form.unmount()
      show()
      expect(text()).toBe('early')
    })
  })

  describe('what is not taken', () => {
    it('stays in the field when it is too large, with the way out', async () => {
      await opened()
      show()
      const large = 'x'.repeat(256 * 1024 + 1)
      await type(large)
      await enter()
      expect(text()).toBe(large)
      expect(refusal().text()).toBe('Not sent: it is too long. A message can have 262,144 bytes: shorten it or send it in parts.')
      expect(newest().sent).toEqual([])
      await type('short')
      await enter()
      expect(refusal().exists()).toBe(false)
      expect(newest().last.payload.text).toBe('short')
    })

    it('comes back into an empty field with the reason', async () => {
      await opened()
      show()
      await type('hello')
      await enter()
      await newest().last.answer(no('invalid_arguments', 'not like this'))
      expect(text()).toBe('hello')
      expect(refusal().text()).toBe('Not sent: not like this')
      expect(session.unsent).toEqual([])
    })

    it('waits in the session while something else is written, or while another session is open', async () => {
      await opened()
      show()
      await type('hello')
      await enter()
      await type('something else')
      await newest().last.answer(no('invalid_arguments', 'not like this'))
      expect(text()).toBe('something else')
      expect(session.unsent).toMatchObject([{ text: 'hello', refused: { message: 'not like this' } }])
      await opened('ses_2')
      await nextTick()
      expect([text(), refusal().exists()]).toEqual(['', false])
    })

    it('comes back when the composer is drawn again', async () => {
      await opened()
      show()
      await type('hello')
      await enter()
      form.unmount()
      await newest().last.answer(no('invalid_arguments', 'not like this'))
      show()
      await settled()
      expect(text()).toBe('hello')
      expect(refusal().text()).toBe('Not sent: not like this')
    })
  })

  describe('stopping', () => {
    it('says that it waits for the connection', async () => {
      const running = { turn: 3, iteration: 1, attempt: 0, phase: 'model' as const, text: '', reasoning: '', since: '' }
      session.open('ses_1')
      await newest().ready({ state: { ...systemReady().state, running } })
      show()
      await newest().lose()
      await field().trigger('keydown', { key: 'Escape' })
      await field().trigger('keydown', { key: 'Escape' })
      expect(form.text()).toContain('Stopping')
      expect(form.text()).toContain('The agent stops when you are back online.')
      await newest().ready({ state: { ...systemReady().state, running } })
      expect(newest().last.payload).toEqual({ turn: 3 })
      expect(form.text()).not.toContain('when the connection is back')
    })
  })
})
