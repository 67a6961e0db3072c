import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { defineComponent, h, ref } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { nextTask } from '@/browser/scheduling'
import { i18n } from '@/locales'
import ServerPage from '@/pages/ServerPage.vue'
import { isNarrow } from '@/rail/rail'
import { usePerson } from '@/stores/person'
import { UNDO_MS, useSessions } from '@/stores/sessions'
import { useWaiting } from '@/stores/waiting'
import { rest } from '@/wire/rest'
import type { Me, ServerItem, SessionItem } from '@/wire/restTypes'
import AppFrame from './AppFrame.vue'

vi.mock('@/wire/listLink', () => ({ ListLink: class { open() {} close() {} } }))

const ITEM: SessionItem = { id: 'a', title: 'a', createdAt: '2026-11-23T10:00:00Z', updatedAt: '2026-11-23T10:00:00Z', state: 'idle', waiting: 0, version: 1, isPinned: false, isArchived: false, tags: [] }
const SERVER = { name: 'files', source: 'tenant', lookedAfter: true, transport: 'http', enabled: true, status: 'healthy', toolCount: 0, enabledTools: 0, definitionTokens: 0, runsIn: { kind: 'remote', hosts: ['files.example'] } } as unknown as ServerItem
const isThere = ref(true)
const Vanishing = defineComponent({ setup: () => () => h('div', isThere.value ? h('button', { id: 'vanishing' }, 'x') : '') })

let page: VueWrapper

beforeEach(() => {
  setActivePinia(createPinia())
  isThere.value = true
  vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [ITEM], nextCursor: null })
  vi.spyOn(rest, 'changeSessions').mockResolvedValue({ done: [], notFound: [], deleteAt: null })
  vi.spyOn(rest, 'server').mockResolvedValue(SERVER)
  vi.spyOn(rest, 'serverTools').mockResolvedValue({ items: [] })
  vi.spyOn(rest, 'serverDay').mockResolvedValue({ name: 'files', status: 'unknown', consecutiveFailures: 0, stepSeconds: 300, steps: [] })
  usePerson().enter({ user: { id: 'ana', name: 'Ana', role: 'owner', installationAdmin: false, rights: [] }, tenant: { id: 't', name: 't' }, csrfToken: '', installation: { name: '', version: '' }, authMode: 'password', encrypted: true } satisfies Me)
})
afterEach(() => {
  page.unmount()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

async function show(path: string): Promise<void> {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/vanishing', component: Vanishing },
      { path: '/servers/:name', component: ServerPage },
      { path: '/:rest(.*)*', component: { render: () => null } },
    ],
  })
  await router.push(path)
  page = mount(AppFrame, { attachTo: document.body, global: { plugins: [i18n, router] } })
  // The page inside comes in a task of its own.
  await nextTask()
  await flushPromises()
}

it('keeps the focus on the page when what had it takes itself away', async () => {
  await show('/vanishing')
  page.get<HTMLElement>('#vanishing').element.focus()
  isThere.value = false
  await flushPromises()
  expect(document.activeElement).toBe(page.get('main').element)
})

it('keeps the focus in the rail when a deletion can no longer be undone', async () => {
  await show('/vanishing')
  vi.useFakeTimers()
  void useSessions().remove([ITEM])
  await flushPromises()
  page.get<HTMLElement>('.undo button').element.focus()
  await vi.advanceTimersByTimeAsync(UNDO_MS)
  expect(page.find('.undo').exists()).toBe(false)
  expect(document.activeElement?.getAttribute('href')).toBe('/s/new')
})

it('goes from removing a server to keeping it, and back', async () => {
  await show('/servers/files')
  page.get<HTMLElement>('[data-remove]').element.focus()
  await page.get('[data-remove]').trigger('click')
  await flushPromises()
  expect(document.activeElement).toBe(page.get('[data-keep]').element)
  await page.get('[data-keep]').trigger('click')
  await flushPromises()
  expect(document.activeElement).toBe(page.get('[data-remove]').element)
})

it.each([true, false])('says what waits where the rail is collapsed: %s', async (narrow) => {
  isNarrow.value = narrow
  await show('/s/b')
  useWaiting().calls = 3
  await flushPromises()
  const way = page.get('.rail a[href="/approvals"]')
  expect([way.attributes('aria-label'), way.text()]).toEqual(narrow ? ['Waiting for you: 3 calls', '3'] : [undefined, 'Waiting for you: 3 callsWaiting for you3'])
  isNarrow.value = false
})

it('leads to what waits beside the button that opens the rail', async () => {
  await show('/servers/files')
  const openers = () => page.findAll('.opener').map((opener) => [opener.attributes('aria-label'), opener.attributes('href'), opener.text()])
  expect(openers()).toEqual([['Show sessions', undefined, '']])
  useWaiting().calls = 2
  await flushPromises()
  expect(openers()).toEqual([['Show sessions', undefined, ''], ['Waiting for you: 2 calls', '/approvals', '2']])
})

it('draws no rail where the screen has no room for it, and does so when it has', async () => {
  const media = Object.assign(new EventTarget(), { matches: false })
  vi.spyOn(globalThis, 'matchMedia').mockReturnValue(media as unknown as MediaQueryList)
  await show('/vanishing')
  expect(page.find('nav').exists()).toBe(false)
  media.matches = true
  media.dispatchEvent(new Event('change'))
  await flushPromises()
  expect(page.find('nav').exists()).toBe(true)
})
