import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { stepsOf, totals } from '@/servers/HealthStrip.vue'
import PackageInstallation from '@/servers/PackageInstallation.vue'
import RefusedHosts from '@/servers/RefusedHosts.vue'
import ServerSecrets from '@/servers/ServerSecrets.vue'
import { costOf } from '@/servers/serverWords'
import TestReport from '@/servers/TestReport.vue'
import { usePerson } from '@/stores/person'
import { rest } from '@/wire/rest'
import type { Me, ServerConfig, ServerItem, ServerTool, PackageInstallation as Told, ToolDecision } from '@/wire/restTypes'
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
    user: { id: 'ana', name: 'Ana', role: 'member', installationAdmin: false, rights: [], ...user },
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
  expect(page.get('[role=status]').text()).toBe('Saved. Sessions use it from their next request.')
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
  // The clock stays: Vue leaves out events that are older than their listener.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const asked = vi.spyOn(rest, 'readServers').mockImplementation(async (text) => {
    const [command = '', ...args] = text.split(' ')
    return { kind: 'command', servers: [{ name: 'program', config: { transport: 'stdio', command, args } }], problems: ['`other` has no `command` and no `url`'] }
  })
  page = mount(NewServerPage, { global: { plugins: [i18n, router] }, attachTo: document.body })
  for (const text of ['some-program', 'some-program-of-mine', 'some-program-of-mine --serve']) {
    await page.get('[name=pasted]').setValue(text)
  }
  expect(page.text()).not.toContain('Recognised')
  await vi.advanceTimersByTimeAsync(300)
  vi.useRealTimers()
  // Only what stood still is read.
  expect(asked.mock.calls).toEqual([['some-program-of-mine --serve']])
  expect(page.text()).toContain('Recognised: a command.')
  expect(page.text()).toContain('`other` has no `command` and no `url`')
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
  expect(row().get('[role=alert]').text()).toContain('wipe changed since it was shown')
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

describe('secrets', () => {
  function words(config: ServerConfig): string {
    const item = { name: 'tracker', config, secrets: ['T'] } as unknown as ServerItem
    return mount(ServerSecrets, { props: { item }, global: { plugins: [i18n] } }).text()
  }

  it('says that nothing refers to a secret only where that can be seen', () => {
    const unused = 'Set, but not used.'
    expect(words({ url: 'https://e.test/mcp' })).toContain(unused)
    expect(words({ url: 'https://e.test/mcp', headers: { Authorization: 'Bearer ${secret:T}' } })).not.toContain(unused)
    expect(words({ url: 'https://e.test/mcp?key=••••' })).not.toContain(unused)
  })
})

describe('the test of a connection', () => {
  test('tools that work only as tasks are counted and named as not offered', () => {
    const tools = [
      { name: 'long', description: 'Takes long', needsTasks: true, appOnly: false },
      { name: 'short', description: 'Does not', needsTasks: false, appOnly: false },
    ]
    const report = mount(TestReport, {
      props: { test: { ok: true, phases: [], tools, stderr: [] } },
      global: { plugins: [i18n] },
    })
    expect(report.get('p').text()).toContain('It works: 2 tools. 1 needs tasks and is not offered.')
    const rows = report.findAll('details li').map((row) => row.text())
    expect(rows[0]).toContain('Not offered')
    expect(rows[1]).not.toContain('Not offered')
  })
})

describe('the health strip', () => {
  it('fills the day and keeps what was seen in its place', () => {
    const now = Date.parse('2026-11-22T05:10:00Z')
    const steps = stepsOf(
      {
        stepSeconds: 1800,
        steps: [
          { from: '2026-11-20T05:00:00Z', well: 9, badly: 9 },
          { from: '2026-11-22T03:30:00+00:00', well: 1, badly: 2 },
          { from: '2026-11-22T05:00:00Z', well: 4, badly: 0 },
        ],
      },
      now,
    )
    expect(steps).toHaveLength(48)
    expect(steps[0]?.from).toBe(Date.parse('2026-11-21T05:30:00Z'))
    expect(steps.at(-1)).toEqual({ from: Date.parse('2026-11-22T05:00:00Z'), well: 4, badly: 0 })
    expect(steps.at(-4)).toMatchObject({ well: 1, badly: 2 })
    expect(totals(steps)).toEqual({ well: 5, all: 7 })
  })
})

describe('refused hosts', () => {
  const AT = '2026-11-26T04:00:00.000Z'
  const refused = { host: 'api.github.com', port: 443, entry: 'api.github.com', reason: 'it is not among the hosts', at: AT, count: 3 }
  const address = { host: '10.0.0.1', port: 443, reason: 'it is an address, and hosts are reached by their names', at: AT, count: 1 }

  function server(more: Partial<ServerItem>): ServerItem {
    return { name: 'tracker', source: 'tenant', refusedHosts: [refused, address], ...more } as unknown as ServerItem
  }

  function show(item: ServerItem, mayChange: boolean) {
    return mount(RefusedHosts, { props: { item, mayChange }, global: { plugins: [i18n] } })
  }

  beforeEach(() => vi.restoreAllMocks())

  it('allows a host beside those that are allowed by now', async () => {
    const now = server({ config: { command: 'x', network: ['a.example'] } as unknown as ServerItem['config'] })
    vi.spyOn(rest, 'server').mockResolvedValue(now)
    const change = vi.spyOn(rest, 'changeServer').mockResolvedValue(now)
    const shown = show(server({}), true)
    expect(shown.findAll('button')).toHaveLength(1)
    const button = shown.get('button')
    expect(button.attributes('aria-label')).toBe('Allow api.github.com for this server')
    await button.trigger('click')
    await flushPromises()
    expect(change).toHaveBeenCalledWith('tracker', { network: ['a.example', 'api.github.com'] })
    expect(shown.emitted('changed')).toHaveLength(1)
  })

  it('says what went wrong and lets the person try again', async () => {
    vi.spyOn(rest, 'server').mockRejectedValue(new Error('away'))
    const shown = show(server({}), true)
    await shown.get('button').trigger('click')
    await flushPromises()
    expect(shown.get('[role=alert]').text()).toContain('Not allowed')
    expect(shown.get('button').attributes('disabled')).toBeUndefined()
  })

  it('shows each host with its reason, and no button where none would help', () => {
    const text = show(server({}), false).text()
    expect(text).toContain('api.github.com:443')
    expect(text).toContain('3 times')
    expect(text).toContain('it is an address')
    expect(text).toContain('in network')
    expect(show(server({ source: 'bundled' }), false).text()).toContain('in sandbox.network')
    expect(show(server({}), false).find('button').exists()).toBe(false)
  })

  it('is not there while nothing was refused', () => {
    expect(show(server({ refusedHosts: undefined }), true).text()).toBe('')
  })
})

describe('an installed package', () => {
  const BEGAN = '2026-01-01T00:00:00Z'
  const INSTALLED = { version: '1.0.0', content: 'a'.repeat(64), packages: 12, skippedScripts: [] }

  let shown: VueWrapper | undefined
  /** What is answered from now on, and what was asked. */
  let told: Told
  let asked: string[]

  function answer(state: Told['state'], more: Partial<Told> = {}) {
    told = { state, package: { registry: 'npm', name: 'notes', with: [], extras: [], allowScripts: false }, phases: [], log: [], ...more } as Told
  }

  async function look(mayChange = true) {
    shown = mount(PackageInstallation, { props: { server: 'notes', mayChange }, global: { plugins: [i18n] } })
    await flushPromises()
    return shown
  }

  const button = (page: VueWrapper, name: string) => page.findAll('button').find((it) => it.text() === name)

  beforeEach(() => {
    asked = []
    vi.useFakeTimers()
    vi.stubGlobal('fetch', async (address: string, { method, body }: { method: string; body?: string }) => {
      asked.push(`${method} ${new URL(address, 'http://sepal.test').pathname.replace('/api/mcp/notes/', '')}${body ?? ''}`)
      return Response.json(told)
    })
  })
  afterEach(() => {
    shown?.unmount()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  it('shows each phase while it installs, and says when it is there', async () => {
    answer('downloading', {
      phases: [
        { name: 'resolving', beganAt: BEGAN, ms: 900 },
        { name: 'downloading', beganAt: BEGAN },
      ],
      log: ['npm http fetch GET 200'],
    })
    const page = await look()
    const rows = page.findAll('li').map((row) => row.text())
    expect(rows[0]).toContain('Resolving versions')
    expect(rows[1]).toContain('Downloading')
    expect(page.get('[role=status]').text()).toBe('Downloading')
    expect(page.find('details').attributes('open')).toBeUndefined()

    answer('ready', { installed: INSTALLED })
    await vi.advanceTimersByTimeAsync(1000)
    await flushPromises()
    expect(page.text()).toContain('notes 1.0.0, with 12 packages in all, pinned as aaaaaaaaaaaa')
    expect(page.emitted('ready')).toHaveLength(1)
    const before = asked.length
    await vi.advanceTimersByTimeAsync(5000)
    expect(asked).toHaveLength(before)
  })

  it('shows the reason, what helps and the last lines of a failure, and tries again', async () => {
    answer('failed', {
      failure: { reason: 'no_such_package', text: 'npm has no package `notes`', remedy: 'check the name of the package' },
      phases: [{ name: 'resolving', beganAt: BEGAN, ms: 100, error: 'npm has no package `notes`' }],
      log: ['npm error code E404'],
    })
    const page = await look()
    expect(page.get('[role=alert]').text()).toBe('npm has no package `notes`: check the name of the package')
    expect(page.get('details').attributes('open')).toBeDefined()
    expect(page.get('pre').text()).toBe('npm error code E404')
    answer('waiting')
    await button(page, 'Try again')?.trigger('click')
    await flushPromises()
    expect(asked.at(-1)).toBe('POST installation')
    expect(button(page, 'Stop installing')).toBeDefined()
  })

  it('shows what a newer version changes, and takes exactly what was shown', async () => {
    const tool = (name: string, description: string) => ({ name, description, schema: { type: 'object' } })
    const newer = {
      version: '2.0.0',
      content: 'b'.repeat(64),
      added: [tool('more', 'Comes')],
      removed: [tool('less', 'Goes')],
      changed: [{ before: tool('edit', 'Edits one'), after: tool('edit', 'Edits all') }],
    }
    answer('ready', { installed: INSTALLED, newer } as unknown as Partial<Told>)
    const page = await look()
    for (const words of ['Version 2.0.0 is available', 'New tools', 'Comes', 'Removed tools', 'Goes', 'Edits one', 'Edits all']) {
      expect(page.text()).toContain(words)
    }
    answer('ready', { installed: { ...INSTALLED, version: '2.0.0' } })
    await button(page, 'Use version 2.0.0')?.trigger('click')
    await flushPromises()
    expect(asked.at(-1)).toBe(`POST installation/accept${JSON.stringify({ content: newer.content })}`)
    expect(page.text()).toContain('Sessions use version 2.0.0 from their next call.')
    expect(button(page, 'Use version 2.0.0')).toBeUndefined()
  })

  it('says that nothing is newer, once it has looked', async () => {
    answer('ready', { installed: INSTALLED })
    const page = await look()
    answer('resolving', { installed: INSTALLED })
    await button(page, 'Look for a newer version')?.trigger('click')
    await flushPromises()
    expect(asked.at(-1)).toBe('POST installation/check')
    expect(page.text()).not.toContain('This is the newest version.')
    answer('ready', { installed: INSTALLED })
    await vi.advanceTimersByTimeAsync(1000)
    await flushPromises()
    expect(page.text()).toContain('This is the newest version.')
  })

  it('offers nothing to those who may not change it', async () => {
    answer('ready', { installed: INSTALLED })
    const page = await look(false)
    expect(page.findAll('button')).toHaveLength(0)
  })
})

describe('the words', () => {
  const item = (enabledTools: number | null, definitionTokens: number | null, enabled = true) =>
    ({ name: 'a', enabled, enabledTools, definitionTokens }) as ServerItem

  test('above 100 tools it is said what they cost in each request', () => {
    expect(costOf([item(100, 9_000), item(null, null)])).toBe('')
    expect(costOf([item(100, 9_000), item(50, 9_000, false)])).toBe('')
    const words = costOf([item(100, 11_000), item(1, 1_500)])
    expect(words).toMatch(/^The model gets 101 tools\. .* 12\.5K tokens in every request/)
  })
})
