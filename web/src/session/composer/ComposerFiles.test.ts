import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import { newest, settled, sockets } from '@/wire/testing'
import type { Attachment } from '@/wire/types'
import { upload } from '@/wire/upload'
import ComposerForm from './ComposerForm.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())
vi.mock('@/wire/upload', () => ({
  upload: vi.fn(),
  attachmentAddress: (session: string, id: string) => `/api/sessions/${session}/attachments/${id}`,
}))

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
