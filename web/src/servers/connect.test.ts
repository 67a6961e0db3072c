// @vitest-environment happy-dom
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import ConnectedPage from '@/pages/ConnectedPage.vue'
import ConnectCards from './ConnectCards.vue'
import { leaveFor, type ServerConnection } from './connect'
import MyConnection from './MyConnection.vue'

let shown: VueWrapper | undefined
let items: ServerConnection[]
let asked: { method: string; path: string; body: unknown }[]
let url: string
let refusal: Response | undefined

const none = { template: '<div />' }
const router = () =>
  createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/connected', name: 'connected', component: none },
      { path: '/:rest(.*)*', component: none },
    ],
  })

beforeEach(() => {
  setActivePinia(createPinia())
  items = []
  asked = []
  url = 'https://as.test/authorize?state=x'
  refusal = undefined
  vi.stubGlobal('fetch', async (address: string, { method, body }: { method: string; body?: string }) => {
    const { pathname } = new URL(address, 'http://sepal.test')
    asked.push({ method, path: pathname, body: body === undefined ? undefined : JSON.parse(body) })
    if (refusal) return refusal
    if (pathname.endsWith('/connections')) return Response.json({ items })
    if (pathname.endsWith('/callback')) return Response.json({ name: 'notes', returnTo: '/s/ses_1' })
    if (pathname.endsWith('/connect')) return Response.json({ url })
    return new Response(null, { status: 204 })
  })
})
afterEach(() => {
  shown?.unmount()
  vi.unstubAllGlobals()
})

const needed = (wants: string[]): ServerConnection => ({ name: 'notes', state: 'needed', scopes: ['read'], wants })

describe('ConnectCards', () => {
  it('names the server and what it wants, and goes away with the word of the server', async () => {
    items = [needed(['write']), { ...needed([]), name: 'other', state: 'connected' }]
    shown = mount(ConnectCards, { global: { plugins: [i18n, router()] } })
    await flushPromises()
    expect(shown.findAll('li')).toHaveLength(1)
    expect(shown.text()).toContain('notes needs more access: write.')
    expect(shown.get('button').attributes('aria-label')).toBe('Connect to notes')
    items = []
    dispatchEvent(new Event('mcpConnection'))
    await flushPromises()
    expect(shown.find('li').exists()).toBe(false)
  })

  it('puts a server off', async () => {
    items = [needed([])]
    shown = mount(ConnectCards, { global: { plugins: [i18n, router()] } })
    await flushPromises()
    await shown.findAll('button')[1]?.trigger('click')
    await flushPromises()
    expect(asked.at(-1)).toMatchObject({ method: 'POST', path: '/api/mcp/notes/connect/dismiss' })
    expect(shown.find('li').exists()).toBe(false)
  })
})

describe('MyConnection', () => {
  const mine = (connection: ServerConnection) => mount(MyConnection, { props: { connection }, global: { plugins: [i18n, router()] } })

  it('says what was allowed, and ends it', async () => {
    shown = mine({ ...needed([]), state: 'connected', connectedAt: '2026-11-01T10:00:00Z' })
    expect(shown.text()).toContain('Connected since')
    expect(shown.text()).toContain('You allowed: read.')
    await shown.get('[aria-label="Disconnect from notes"]').trigger('click')
    await flushPromises()
    expect(asked.at(-1)).toMatchObject({ method: 'DELETE', path: '/api/mcp/notes/connect' })
    expect(shown.get('[role="status"]').text()).toBe('Disconnected.')
    expect(shown.emitted('changed')).toHaveLength(1)
  })

  it('says what the server wants beside that, and has nothing to end where nobody is connected', () => {
    shown = mine({ ...needed(['write']), connectedAt: '2026-11-01T10:00:00Z' })
    expect(shown.text()).toContain('notes needs more access: write.')
    shown.unmount()
    shown = mine({ name: 'notes', state: 'absent', scopes: [], wants: [] })
    expect(shown.text()).toContain('Each person connects for themselves.')
    expect(shown.find('[aria-label="Disconnect from notes"]').exists()).toBe(false)
  })

  it('says why it is not connected, and lets the person try again', async () => {
    refusal = Response.json({ detail: 'the authorisation server refused: invalid_target', code: 'tool_failed' }, { status: 502 })
    shown = mine({ name: 'notes', state: 'absent', scopes: [], wants: [] })
    const connect = shown.get('[aria-label="Connect to notes"]')
    await connect.trigger('click')
    await flushPromises()
    expect(shown.get('[role="alert"]').text()).toBe('Not connected. the authorisation server refused: invalid_target')
    expect(connect.attributes('disabled')).toBeUndefined()
  })
})

describe('leaveFor', () => {
  it('goes to addresses of the web alone', async () => {
    const gone: string[] = []
    await leaveFor('notes', '/s/ses_1', (to) => gone.push(to))
    expect(gone).toEqual([url])
    expect(asked.at(-1)?.body).toEqual({ returnTo: '/s/ses_1' })
    url = 'javascript:alert(1)'
    await expect(leaveFor('notes', '/', (to) => gone.push(to))).rejects.toThrow()
    expect(gone).toHaveLength(1)
  })
})

describe('ConnectedPage', () => {
  it('sends the answer once, takes it out of the address, and goes back', async () => {
    const ways = router()
    await ways.push('/connected#at=0a&state=s&code=c&iss=https%3A%2F%2Fas.test&at=other')
    shown = mount(ConnectedPage, { global: { plugins: [i18n, ways] } })
    await flushPromises()
    const sent = asked.filter(({ path }) => path.endsWith('/callback'))
    expect(sent).toEqual([{ method: 'POST', path: '/api/mcp/oauth/callback', body: { state: 's', at: '0a', code: 'c', iss: 'https://as.test' } }])
    expect(ways.currentRoute.value.fullPath).toBe('/s/ses_1')
  })

  it('says so where there is no answer', async () => {
    const ways = router()
    await ways.push('/connected')
    shown = mount(ConnectedPage, { global: { plugins: [i18n, ways] } })
    await flushPromises()
    expect(shown.text()).toContain('No sign-in is in progress')
    expect(asked).toEqual([])
  })
})
