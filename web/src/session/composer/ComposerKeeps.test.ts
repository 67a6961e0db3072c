import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { usePerson } from '@/stores/person'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import { newest, no, settled, sockets, systemReady } from '@/wire/testing'
import ComposerForm from './ComposerForm.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

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
    expect(refusal().text()).toBe('Not sent: it is longer than the server takes. One message may have 262,144 bytes: shorten it or send it in parts.')
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
    expect(form.text()).toContain('The agent is told to stop when the connection is back.')
    await newest().ready({ state: { ...systemReady().state, running } })
    expect(newest().last.payload).toEqual({ turn: 3 })
    expect(form.text()).not.toContain('when the connection is back')
  })
})
