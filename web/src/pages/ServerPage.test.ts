// @vitest-environment happy-dom
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { usePerson } from '@/shell/person'
import type { Me, ServerItem } from '@/wire/rest'
import NewServerPage from './NewServerPage.vue'
import ServerPage from './ServerPage.vue'

let page: VueWrapper
/** `null`: somebody removed it. */
let stored: Partial<ServerItem> | null

const buttons = (words: string) => page.findAll('button').filter((button) => button.text() === words)
const press = (words: string) => buttons(words)[0]?.trigger('click')
const focused = () => document.activeElement?.textContent?.trim()

beforeEach(() => {
  setActivePinia(createPinia())
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }))
  vi.stubGlobal('fetch', async (url: string, { method, body }: { method: string; body?: string }) => {
    const path = new URL(url, 'http://sepal.test').pathname
    if (!stored) return Response.json({ code: 'not_found' }, { status: 404 })
    if (path.endsWith('/tools')) return Response.json({ items: [] })
    if (path.endsWith('/health')) return Response.json({ stepSeconds: 1800, steps: [] })
    if (method === 'PATCH') stored = { ...stored, config: { ...stored.config, ...(JSON.parse(body ?? '{}') as object) } }
    return Response.json(stored)
  })
})
afterEach(() => {
  page.unmount()
  document.body.replaceChildren()
  vi.unstubAllGlobals()
})

/** What the gateway shows of an entry follows from who asks: only those who may change it get its configuration. */
async function open(source: ServerItem['source'], user: Partial<Me['user']>) {
  const installation = { name: 'Sepal', version: '0.1.0' }
  usePerson().enter({
    user: { id: 'ana', name: 'Ana', role: 'member', ...user },
    tenant: { id: 't', name: 't' },
    csrfToken: 'x',
    installation,
    authMode: 'password',
    encrypted: true,
  })
  stored = { name: 'tracker', source, transport: 'stdio', enabled: true, status: 'unknown', toolCount: null, definitionTokens: null }
  if (user.role !== 'member' || user.installationAdmin) stored = { ...stored, config: { command: 'old' }, secrets: [] }
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/servers/:name?', component: {} }] })
  await router.push('/servers/tracker')
  // As in the frame of the page: where the focus goes when it has lost its place.
  const main = document.body.appendChild(document.createElement('main'))
  page = mount(ServerPage, { global: { plugins: [i18n, router] }, attachTo: main })
  await flushPromises()
}

it('lets those change an entry who may', async () => {
  const check = async (source: ServerItem['source'], user: Partial<Me['user']>, may: boolean) => {
    await open(source, user)
    expect(page.find('[data-edit]').exists(), `${source} ${JSON.stringify(user)}`).toBe(may)
    page.unmount()
  }
  await check('tenant', { role: 'owner' }, true)
  await check('tenant', { role: 'admin' }, true)
  await check('tenant', { role: 'member' }, false)
  await check('tenant', { role: 'viewer' }, false)
  await check('installation', { role: 'owner' }, false)
  await check('installation', { role: 'member', installationAdmin: true }, true)
  await check('settings', { role: 'owner', installationAdmin: true }, false)
  await check('bundled', { role: 'owner', installationAdmin: true }, false)
})

it('edits in place, says that it is saved, and gives the focus back', async () => {
  await open('tenant', { role: 'admin' })
  await press('Edit')
  expect(document.activeElement?.getAttribute('name')).toBe('command')
  expect(buttons('Remove')).toEqual([])
  await page.get('[name=command]').setValue('new')
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(page.find('form').exists()).toBe(false)
  expect(page.get('[role=status]').text()).toBe('Saved. Sessions have it from their next request on.')
  expect(page.text()).toContain('"command": "new"')
  expect(focused()).toBe('Edit')
  await press('Edit')
  expect(page.find('[role=status]').exists()).toBe(false)
  await press('Cancel')
  await flushPromises()
  expect(focused()).toBe('Edit')
})

it('leaves the focus in the form when it is opened again while the page still loads', async () => {
  await open('tenant', { role: 'admin' })
  await press('Edit')
  await press('Cancel')
  await nextTick()
  await press('Edit')
  await flushPromises()
  expect(document.activeElement?.getAttribute('name')).toBe('command')
})

it('shows no longer what somebody removed meanwhile', async () => {
  await open('tenant', { role: 'admin' })
  await press('Edit')
  stored = null
  await press('Cancel')
  await flushPromises()
  expect(page.get('[role=alert]').text()).toContain('There is no such server.')
  expect(page.find('[data-edit]').exists()).toBe(false)
})

it('shows of a new entry what stands in the text now, and sends no line that is not finished', async () => {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/servers/:name?', component: {} }] })
  await router.push('/servers/new')
  stored = {}
  page = mount(NewServerPage, { global: { plugins: [i18n, router] }, attachTo: document.body })
  for (const text of ['some-program', 'some-program-of-mine', 'some-program-of-mine --serve']) {
    await page.get('[name=pasted]').setValue(text)
  }
  expect(page.get<HTMLInputElement>('[name=command]').element.value).toBe('some-program-of-mine')
  expect(page.get<HTMLTextAreaElement>('[name=args]').element.value).toBe('--serve')
  await page.get('[name=env]').setValue('HALF')
  const fetched = vi.spyOn(globalThis, 'fetch')
  await page.get('form').trigger('submit')
  await flushPromises()
  expect(fetched).not.toHaveBeenCalled()
  expect(page.text()).toContain('This line has no name before an equals sign: HALF')
})
