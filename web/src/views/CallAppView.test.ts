import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { callView } from '@/approval/testing'
import { useSession } from '@/session/store/session'
import { addContext, contextsOf, draftKey, dropContext, leaveOut } from '@/stores/viewContexts'
import type { ViewHost } from './bridge'
import CallAppView from './CallAppView.vue'
import { door, type ViewDocument } from './consent'
import { contextOf, endingOf } from './surroundings'

const bridges = vi.hoisted(() => ({ opened: [] as { host: ViewHost; told: [string, unknown][]; closed: boolean }[] }))
vi.mock('./bridge', () => ({
  openBridge: (_frame: unknown, _html: string, host: ViewHost) => {
    const bridge = { host, told: [] as [string, unknown][], closed: false }
    bridges.opened.push(bridge)
    return { tell: (method: string, params: unknown) => bridge.told.push([method, params]), close: () => Promise.resolve(void (bridge.closed = true)) }
  },
}))

const call = callView({ status: 'completed', server: 'charts', view: 'ui://chart/a', args: { of: 'sales' }, output: 'drawn', durationMs: 5, structured: { points: [1] } })
const plain: ViewDocument = { html: '<h1>Chart</h1>', frame: 'api/view-frame?', connect: [], load: [], frames: [], base: [], leftOut: [], permissions: [] }

function open(server = 'charts') {
  return mount(CallAppView, { props: { call: { ...call, server } }, attachTo: document.body })
}

beforeEach(() => {
  setActivePinia(createPinia())
  bridges.opened = []
  vi.stubGlobal('ResizeObserver', class { observe() {} disconnect() {} })
  useSession().$patch({ id: 'ses_1' } as never)
})
afterEach(() => {
  document.body.replaceChildren()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

it('asks for nothing before the person does, and then shows the view sealed, with its call', async () => {
  const read = vi.spyOn(door, 'read').mockResolvedValue(plain)
  const wrapper = open()
  expect(read).not.toHaveBeenCalled()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  expect(read).toHaveBeenCalledWith('ses_1', 'charts', 'ui://chart/a')
  const frame = wrapper.get('iframe')
  expect(frame.attributes('sandbox')).toBe('allow-scripts allow-forms')
  expect(frame.element.src).toContain('api/view-frame')
  const [bridge] = bridges.opened
  bridge?.host.ready()
  expect(bridge?.told).toEqual([
    ['ui/notifications/tool-input', { arguments: { of: 'sales' } }],
    ['ui/notifications/tool-result', { content: [{ type: 'text', text: 'drawn' }], structuredContent: { points: [1] }, isError: false }],
  ])
  bridge?.host.resize(10_000)
  await flushPromises()
  expect(frame.element.style.height).toBe('640px')
  wrapper.unmount()
  expect(bridge?.closed).toBe(true)
})

it('asks the person before a view reaches hosts, and once', async () => {
  vi.spyOn(door, 'read').mockResolvedValue({ ...plain, connect: ['https://api.example.com'], leftOut: ['*'], permissions: ['camera'] })
  const wrapper = open('reaching')
  await wrapper.get('button').trigger('click')
  await flushPromises()
  expect(wrapper.find('iframe').exists()).toBe(false)
  expect(wrapper.text()).toContain('https://api.example.com')
  expect(wrapper.text()).toContain('camera')
  await wrapper.get('.ap-button-open').trigger('click')
  await flushPromises()
  expect(wrapper.find('iframe').exists()).toBe(true)
  await wrapper.get('.view-close').trigger('click')
  await flushPromises()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  expect(wrapper.find('iframe').exists()).toBe(true)
})

it('says why a view cannot be shown, and tries again', async () => {
  const read = vi.spyOn(door, 'read').mockRejectedValueOnce(new Error('away')).mockResolvedValue(plain)
  const wrapper = open()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  expect(wrapper.get('[role=alert]').text()).toContain('Sepal did not answer')
  await wrapper.get('button').trigger('click')
  await flushPromises()
  expect(read).toHaveBeenCalledTimes(2)
  expect(wrapper.find('iframe').exists()).toBe(true)
  bridges.opened[0]?.host.trouble('left')
  await flushPromises()
  expect(wrapper.find('iframe').exists()).toBe(false)
  expect(wrapper.get('[role=status]').text()).toContain('opened another page')
})

it('opens a link by the click of the person alone', async () => {
  vi.spyOn(door, 'read').mockResolvedValue(plain)
  const wrapper = open()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  const url = new URL('https://example.com/a?b=c')
  const first = bridges.opened[0]?.host.openLink(url)
  expect(await bridges.opened[0]?.host.openLink(url)).toBe(false)
  await flushPromises()
  expect(wrapper.get('.asked-address').text()).toBe('https://example.com/a?b=c')
  await wrapper.findAll('.asked button').at(-1)?.trigger('click')
  expect(await first).toBe(false)
})

it('asks for calls of its view in the session, and takes along what waits', async () => {
  vi.spyOn(door, 'read').mockResolvedValue(plain)
  const session = useSession()
  const command = vi.spyOn(session, 'command').mockResolvedValue({ ok: true } as never)
  const wrapper = open()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  const answer = bridges.opened[0]?.host.call?.({ name: 'refresh', arguments: {} }, 1)
  const [, payload] = command.mock.calls[0] ?? []
  expect(payload).toMatchObject({ callId: call.callId, name: 'refresh' })
  const done = callView({ callId: 'call_2_0', status: 'completed', output: 'fresh', durationMs: 1, askedBy: { name: 'chart', ...payload } as never })
  session.conversation = { ...session.conversation, entries: [{ kind: 'call', key: 'call_2_0', seq: 9, at: '', call: done }] }
  expect(await answer).toMatchObject({ result: { content: [{ text: 'fresh' }] } })
  await wrapper.get('.view-close').trigger('click')
  await flushPromises()
  expect(command).toHaveBeenLastCalledWith('view:close', { viewId: payload?.viewId })
})

it('shows beside the message what the view lets the model know, until the person leaves it out', async () => {
  vi.spyOn(door, 'read').mockResolvedValue(plain)
  const wrapper = open()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  const [bridge] = bridges.opened
  const draft = draftKey(useSession())
  const texts = () => contextsOf(draft).map(({ text }) => text)
  expect(bridge?.host.know?.('one bar')).toBe(null)
  expect(bridge?.host.know?.('two bars')).toBe(null)
  expect(contextsOf(draft)).toEqual([{ callId: call.callId, name: call.name, server: 'charts', text: 'two bars' }])
  expect(bridge?.host.know?.('')).toBe(null)
  expect(texts()).toEqual([])
  for (const callId of ['a', 'b', 'c', 'd']) addContext(draft, { callId, name: 'x', server: 'y', text: callId })
  expect(bridge?.host.know?.('a fifth')).toMatch(/^4 views/)
  dropContext(draft)
  bridge?.host.know?.('unwanted')
  leaveOut(draft, call.callId)
  expect(bridge?.host.know?.('once more')).toMatch(/took out/)
  expect(texts()).toEqual([])
  // Shown anew, it may.
  await wrapper.get('.view-close').trigger('click')
  await flushPromises()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  expect(bridges.opened[1]?.host.know?.('again')).toBe(null)
  expect(texts()).toEqual(['again'])
  dropContext(draft)
  wrapper.unmount()
})

it('fills the page in the same frame, by the act of the person, and goes back', async () => {
  vi.spyOn(door, 'read').mockResolvedValue(plain)
  const wrapper = open()
  await wrapper.get('button').trigger('click')
  await flushPromises()
  const [bridge] = bridges.opened
  const frame = wrapper.get('iframe').element
  const dialog = wrapper.get('dialog').element
  bridge?.host.declare(['inline'])
  await flushPromises()
  expect(wrapper.text()).not.toContain('Fill the page')
  expect(await bridge?.host.display('fullscreen')).toBe('inline')
  bridge?.host.declare(['inline', 'fullscreen'])
  await flushPromises()
  // It cannot do it by itself.
  expect(await bridge?.host.display('fullscreen')).toBe('inline')
  vi.spyOn(document, 'activeElement', 'get').mockReturnValue(frame)
  expect(await bridge?.host.display('pip')).toBe('inline')
  expect(await bridge?.host.display('fullscreen')).toBe('fullscreen')
  expect(bridge?.told.at(-1)).toEqual(['ui/notifications/host-context-changed', { displayMode: 'fullscreen', containerDimensions: { width: 0, height: 0 } }])
  expect(wrapper.text()).toContain('not from Sepal')
  expect(wrapper.get('iframe').element).toBe(frame)
  dialog.dispatchEvent(new Event('cancel', { cancelable: true }))
  await flushPromises()
  expect(bridge?.told.at(-1)).toEqual(['ui/notifications/host-context-changed', { displayMode: 'inline', containerDimensions: { width: 0, maxHeight: 640 } }])
  expect(dialog.hasAttribute('open')).toBe(true)
  expect(wrapper.get('iframe').element).toBe(frame)
  wrapper.unmount()
})

it('tells a view how its call ended', () => {
  expect(endingOf({ ...call, status: 'executing' })).toBe(null)
  expect(endingOf({ ...call, status: 'failed' })?.params.isError).toBe(true)
  expect(endingOf({ ...call, status: 'cancelled', output: 'stopped' })).toEqual({ method: 'ui/notifications/tool-cancelled', params: { reason: 'stopped' } })
  expect(contextOf(call, { mode: 'inline', width: 320, height: 9 })).toMatchObject({ displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'], containerDimensions: { width: 320, maxHeight: 640 }, theme: 'light' })
})
