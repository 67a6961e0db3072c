// @vitest-environment happy-dom
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import type { Me, ServerItem, ServerTool, ToolDecision } from '@/wire/restTypes'
import NewServerPage from './NewServerPage.vue'
import ServerPage from './ServerPage.vue'

let page: VueWrapper
/** `null`: somebody removed it. */
let stored: Partial<ServerItem> | null
/** What the server offers now. */
let tools: ServerTool[]
let decisions: ToolDecision[]

const buttons = (words: string) => page.findAll('button').filter((button) => button.text() === words)
const press = (words: string) => buttons(words)[0]?.trigger('click')
const focused = () => document.activeElement?.textContent?.trim()

beforeEach(() => {
  tools = []
  decisions = []
  setActivePinia(createPinia())
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }))
  vi.stubGlobal('fetch', async (url: string, { method, body }: { method: string; body?: string }) => {
    const path = new URL(url, 'http://sepal.test').pathname
    if (!stored) return Response.json({ code: 'not_found' }, { status: 404 })
    if (path.endsWith('/tools')) return Response.json({ items: tools })
    if (path.includes('/tools/')) return decided(JSON.parse(body ?? '{}') as ToolDecision)
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

function tool(hash: string, more: Partial<ServerTool>): ServerTool {
  return { name: 'wipe', modelName: 'wipe', description: `What ${hash} does`, schema: { type: 'object' }, annotations: {}, hash, enabled: true, needsTasks: false, appOnly: false, effect: 'ask', ...more }
}

/** As the gateway does it. */
function decided(decision: ToolDecision): Response {
  decisions.push(decision)
  const now = tools[0] as ServerTool
  if (decision.hash !== undefined && decision.hash !== now.hash) {
    return Response.json({ code: 'changed_since_shown', hash: now.hash, tool: now }, { status: 409 })
  }
  const { drift, ...known } = { ...now, effect: decision.effect ?? now.effect, enabled: decision.enabled ?? now.enabled }
  tools = [decision.effect ? known : { ...known, ...(drift ? { drift } : {}) }]
  return Response.json(tools[0])
}

/** What the gateway shows of an entry follows from who asks: only those who may change it get its configuration. */
async function open(source: ServerItem['source'], user: Partial<Me['user']>) {
  const installation = { name: 'Sepal', version: '0.1.0' }
  usePerson().enter({
    user: { id: 'ana', name: 'Ana', role: 'member', installationAdmin: false, ...user },
    tenant: { id: 't', name: 't' },
    csrfToken: 'x',
    installation,
    authMode: 'password',
    encrypted: true,
  })
  const lookedAfter = source === 'person' || user.role !== 'member' && user.role !== 'viewer' || user.installationAdmin === true
  stored = { name: 'tracker', source, lookedAfter, transport: 'stdio', enabled: true, status: 'unknown', toolCount: null, definitionTokens: null, runsIn: { kind: 'container', hosts: [] } }
  if (lookedAfter) stored = { ...stored, config: { command: 'old' }, secrets: [] }
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
  await check('person', { role: 'member' }, true)
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

it('shows the definition of now where another one was decided about, and lets the person decide again', async () => {
  tools = [tool('first', {})]
  await open('tenant', { role: 'admin' })
  tools = [tool('second', { description: 'Deletes\u202E all', schema: { required: ['all'] }, drift: { since: '2026-01-02T03:04:05Z' } })]
  await page.get('select').setValue('allow')
  await flushPromises()
  expect(decisions).toEqual([{ effect: 'allow', hash: 'first' }])
  const row = () => page.get('.tools li')
  expect(row().get('[role=alert]').text()).toContain('wipe has changed since it was shown')
  expect(row().text()).toContain('Deletes⟦U+202E⟧ all')
  expect(row().text()).toContain('"required"')
  expect(page.get<HTMLSelectElement>('select').element.value).toBe('ask')
  expect(document.activeElement?.tagName).toBe('SELECT')
  await page.get('select').setValue('allow')
  await flushPromises()
  expect(decisions.at(-1)).toEqual({ effect: 'allow', hash: 'second' })
  expect(row().find('[role=alert]').exists()).toBe(false)
  expect(row().find('.drift').exists()).toBe(false)
  expect(page.get<HTMLSelectElement>('select').element.value).toBe('allow')
})

it('accepts a changed definition by a word of its own, and switching a tool off says nothing about it', async () => {
  tools = [tool('second', { effect: 'allow', drift: { since: '2026-01-02T03:04:05Z' } })]
  await open('tenant', { role: 'admin' })
  await page.get('.tools input').setValue(false)
  await flushPromises()
  expect(decisions).toEqual([{ enabled: false }])
  expect(page.find('.drift').exists()).toBe(true)
  await press('Accept this definition')
  await flushPromises()
  expect(decisions.at(-1)).toEqual({ effect: 'allow', hash: 'second' })
  expect(page.find('.drift').exists()).toBe(false)
  expect(buttons('Accept this definition')).toEqual([])
})
