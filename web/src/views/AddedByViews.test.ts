import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import ComposerForm from '@/session/composer/ComposerForm.vue'
import { takeBack } from '@/session/store/outbox'
import { useSession } from '@/session/store/session'
import { usePerson } from '@/stores/person'
import { addContext, contextsOf, draftKey, dropContext, type ViewContext } from '@/stores/viewContexts'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import { newest, settled, sockets } from '@/wire/testing'
// Loaded before, so that it stands there as soon as it is drawn.
import './AddedByViews.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

const ana = { user: { id: 'ana', name: 'Ana', role: 'member', installationAdmin: false }, csrfToken: 'x', installation: { name: 'Sepal', version: '1.0.0' } } as Me
const chart: ViewContext = { callId: 'call_1_0', name: 'chart', server: 'charts', text: 'two bars\nof the sales' }

let form: VueWrapper<InstanceType<typeof ComposerForm>>
let session: ReturnType<typeof useSession>

beforeEach(async () => {
  vi.useFakeTimers()
  vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [], nextCursor: null })
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }))
  sockets.length = 0
  setActivePinia(createPinia())
  usePerson().enter(ana)
  session = useSession()
  session.open('s1')
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
  form = mount(ComposerForm, { global: { plugins: [i18n, router] }, attachTo: document.body })
  await newest().ready({ sessionId: 's1' })
})
afterEach(() => {
  dropContext(draftKey(session))
  form.unmount()
  session.close()
  localStorage.clear()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

async function drawn(count: number): Promise<void> {
  await vi.waitFor(() => expect(form.findAll('.added li')).toHaveLength(count))
}

it('stands beside the message in whole, goes with it once, and comes back with a message that is taken back', async () => {
  addContext(draftKey(session), chart)
  await drawn(1)
  expect(form.get('.added summary').text()).toContain('View of chart (charts) adds: two bars')
  expect(form.get('.added pre').text()).toBe('two bars\nof the sales')
  // Alone it is no message.
  expect(form.get<HTMLButtonElement>('button[type=submit]').element.disabled).toBe(true)
  await form.get('textarea').setValue('what of these?')
  await form.get('form').trigger('submit')
  await settled()
  expect(newest().last.payload).toMatchObject({ text: 'what of these?', viewContexts: [{ callId: 'call_1_0', text: 'two bars\nof the sales' }] })
  await drawn(0)
  const [unsent] = session.unsent
  expect(unsent?.viewContexts).toEqual([chart])
  const taken = vi.fn(() => Promise.resolve(true))
  if (unsent) await takeBack({ typist: session.typist, id: 's1', unsend: taken }, unsent)
  expect(taken).toHaveBeenCalledExactlyOnceWith(unsent?.clientMessageId)
  await drawn(1)
})

it('is left out by the person, and then not sent', async () => {
  addContext(draftKey(session), chart)
  await drawn(1)
  await form.get('.added button').trigger('click')
  expect(contextsOf(draftKey(session))).toEqual([])
  await form.get('textarea').setValue('hello')
  await form.get('form').trigger('submit')
  await settled()
  expect(newest().last.payload).not.toHaveProperty('viewContexts')
})
