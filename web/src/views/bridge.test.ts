import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { JsonObject } from '@/wire/types'
import { contextText, messageText, openBridge, read, webAddress, type Bridge, type ViewHost } from './bridge'

/** The frame, as far as the bridge sees it. */
class Frame {
  posted: JsonObject[] = []
  contentWindow = { postMessage: (message: JsonObject) => this.posted.push(message) }

  /** What the view says; by default it is the view that says it. */
  say(message: unknown, source: unknown = this.contentWindow): void {
    dispatchEvent(Object.assign(new Event('message'), { data: message, source }))
  }

  async ask(method: string, params?: JsonObject): Promise<JsonObject | undefined> {
    this.say({ jsonrpc: '2.0', id: 7, method, ...(params && { params }) })
    await vi.advanceTimersByTimeAsync(0)
    return this.posted.find((message) => message.id === 7 && message.method === undefined)
  }

  start(): void {
    this.say({ jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {} })
    this.say({ jsonrpc: '2.0', method: 'ui/notifications/initialized' })
  }
}

const call = vi.fn(() => Promise.resolve({ result: { content: [], isError: false } }))
const forget = vi.fn()
const readFor = vi.fn(() => Promise.resolve({ result: { contents: [] } }))
let frame: Frame
let bridge: Bridge
let host: { [K in keyof ViewHost]: ViewHost[K] & ReturnType<typeof vi.fn> } & { name: string; version: string }

beforeEach(() => {
  vi.useFakeTimers()
  frame = new Frame()
  host = {
    name: 'charts',
    version: '1',
    context: vi.fn(() => ({ theme: 'dark' })),
    ready: vi.fn(),
    resize: vi.fn(),
    openLink: vi.fn(() => Promise.resolve(true)),
    propose: vi.fn(() => true),
    declare: vi.fn(),
    display: vi.fn(() => Promise.resolve('fullscreen')),
    trouble: vi.fn(),
  } as unknown as typeof host
  bridge = openBridge(frame as unknown as HTMLIFrameElement, '<h1>Chart</h1>', host)
})
afterEach(async () => {
  const closing = bridge.close()
  await vi.advanceTimersByTimeAsync(1_000)
  await closing
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('a view', () => {
  it('gets its document once, and is told things once it speaks', () => {
    bridge.tell('ui/notifications/tool-input', {})
    expect(frame.posted).toEqual([])
    frame.start()
    expect(frame.posted).toEqual([{ jsonrpc: '2.0', method: 'ui/notifications/sandbox-resource-ready', params: { html: '<h1>Chart</h1>' } }])
    expect(host.ready).toHaveBeenCalledOnce()
    bridge.tell('ui/notifications/tool-input', { arguments: { a: 1 } })
    expect(frame.posted[1]).toEqual({ jsonrpc: '2.0', method: 'ui/notifications/tool-input', params: { arguments: { a: 1 } } })
  })

  it('is greeted with what the page can do, which is no calls', async () => {
    const answer = await frame.ask('ui/initialize', { protocolVersion: '2025-11-21' })
    expect(answer?.result).toEqual({
      protocolVersion: '2026-01-26',
      hostInfo: { name: 'Sepal', version: '1' },
      hostCapabilities: { openLinks: {}, logging: {}, message: { text: {} } },
      hostContext: { theme: 'dark' },
    })
  })

  it.each(['tools/call', 'resources/read', 'ui/update-model-context', 'sampling/createMessage', 'ui/download-file', 'made/up', 'constructor'])('is refused %s with an error', async (method) => {
    const answer = await frame.ask(method, {})
    expect(answer).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32601 } })
    expect((answer?.error as { message: string }).message).toMatch(/^Sepal /)
  })

  it('calls tools only where the person may, once it speaks, and says when it waits no more', async () => {
    await bridge.close()
    frame = new Frame()
    bridge = openBridge(frame as unknown as HTMLIFrameElement, '', { ...host, call, forget, read: readFor })
    expect((await frame.ask('ui/initialize'))?.result).toMatchObject({ hostCapabilities: { serverTools: {}, serverResources: {} } })
    frame.posted = []
    expect(await frame.ask('tools/call', { name: 'refresh' })).toMatchObject({ error: { code: -32601 } })
    frame.start()
    frame.posted = []
    expect(await frame.ask('tools/call', { name: 'refresh', arguments: { n: 1 } })).toMatchObject({ result: { isError: false } })
    frame.posted = []
    expect(await frame.ask('resources/read', { uri: 'data://a' })).toMatchObject({ result: { contents: [] } })
    expect(readFor).toHaveBeenCalledExactlyOnceWith({ uri: 'data://a' })
    expect(call).toHaveBeenCalledExactlyOnceWith({ name: 'refresh', arguments: { n: 1 } }, 7)
    frame.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })
    expect(forget).toHaveBeenCalledExactlyOnceWith(7)
  })

  it('lets the model know something only where the person may act, and hears why it is not taken', async () => {
    await bridge.close()
    frame = new Frame()
    const know = vi.fn<(text: string) => string | null>(() => null)
    bridge = openBridge(frame as unknown as HTMLIFrameElement, '', { ...host, know })
    expect((await frame.ask('ui/initialize'))?.result).toMatchObject({ hostCapabilities: { updateModelContext: { text: {}, structuredContent: {} } } })
    frame.start()
    frame.posted = []
    expect(await frame.ask('ui/update-model-context', { content: [{ type: 'text', text: 'two bars' }], structuredContent: { bars: [1, 2] } })).toMatchObject({ result: {} })
    expect(know).toHaveBeenCalledExactlyOnceWith('two bars\n{"bars":[1,2]}')
    frame.posted = []
    expect(await frame.ask('ui/update-model-context', { content: [{ type: 'image', data: '' }] })).toMatchObject({ error: { code: -32602 } })
    know.mockReturnValue('no room')
    frame.posted = []
    expect(await frame.ask('ui/update-model-context', { content: [{ type: 'text', text: 'a' }] })).toMatchObject({ error: { code: -32000, message: 'no room' } })
  })

  it('says which places it knows, asks for one, and hears which it has', async () => {
    await frame.ask('ui/initialize', { appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] } })
    expect(host.declare).toHaveBeenCalledExactlyOnceWith(['inline', 'fullscreen'])
    frame.posted = []
    expect(await frame.ask('ui/request-display-mode', { mode: 'pip' })).toMatchObject({ result: { mode: 'fullscreen' } })
    expect(host.display).toHaveBeenCalledExactlyOnceWith('pip')
  })

  it('is heard from its own frame alone', async () => {
    for (const source of [null, window, {}]) frame.say({ jsonrpc: '2.0', id: 7, method: 'ping' }, source)
    await vi.advanceTimersByTimeAsync(0)
    expect(frame.posted).toEqual([])
    expect(await frame.ask('ping')).toMatchObject({ result: {} })
  })

  it('that goes to another page gets no document again, and is over', () => {
    frame.start()
    frame.start()
    expect(host.trouble).toHaveBeenCalledWith('left')
    expect(frame.posted).toHaveLength(1)
  })

  it('that says nothing is in doubt after a while, and one that floods is over', () => {
    vi.advanceTimersByTime(15_000)
    expect(host.trouble).toHaveBeenCalledExactlyOnceWith('silent')
    for (let n = 0; n < 2_300; n++) frame.say({ jsonrpc: '2.0', method: 'ui/notifications/size-changed', params: { height: 9 } })
    expect(host.trouble).toHaveBeenLastCalledWith('flooded')
    expect(host.resize.mock.calls.length).toBeLessThanOrEqual(200)
  })

  it('chooses its height where it names one', () => {
    for (const height of [300, -1, NaN, Infinity, '9', null]) frame.say({ jsonrpc: '2.0', method: 'ui/notifications/size-changed', params: { height, width: 5 } })
    expect(host.resize.mock.calls).toEqual([[300]])
  })

  it('has a link opened only with a yes, and only of the web', async () => {
    expect(await frame.ask('ui/open-link', { url: 'https://example.com/a' })).toMatchObject({ result: {} })
    host.openLink.mockResolvedValue(false)
    frame.posted = []
    expect(await frame.ask('ui/open-link', { url: 'https://example.com/a' })).toMatchObject({ result: { isError: true } })
    host.openLink.mockClear()
    for (const url of ['javascript:alert(1)', 'data:text/html,x', 'https://user@example.com', 'file:///etc/passwd', '/relative', 5, `https://example.com/${'x'.repeat(3_000)}`]) {
      frame.posted = []
      expect(await frame.ask('ui/open-link', { url })).toMatchObject({ error: { code: -32602 } })
    }
    expect(host.openLink).not.toHaveBeenCalled()
  })

  it('proposes a text only while the person uses it', async () => {
    const text = { role: 'user', content: [{ type: 'text', text: 'More of it' }] }
    expect(await frame.ask('ui/message', text)).toMatchObject({ error: { code: -32000 } })
    vi.spyOn(document, 'activeElement', 'get').mockReturnValue(frame as unknown as Element)
    frame.posted = []
    expect(await frame.ask('ui/message', text)).toMatchObject({ result: {} })
    expect(host.propose).toHaveBeenCalledExactlyOnceWith('More of it')
    for (let n = 0; n < 30; n++) await frame.ask('ui/message', text)
    expect(host.propose).toHaveBeenCalledTimes(20)
  })

  it('ends when it says that it has, or after half a second', async () => {
    frame.start()
    const closing = bridge.close()
    expect(frame.posted.at(-1)).toMatchObject({ id: 'teardown', method: 'ui/resource-teardown' })
    frame.say({ jsonrpc: '2.0', id: 'teardown', result: {} })
    await closing
    expect(await frame.ask('ping')).toBe(undefined)
  })

  it('logs to the console', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    frame.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: { a: 'x'.repeat(9_000) } } })
    expect(warn.mock.calls[0]?.[0]).toBe('[view of charts]')
    expect((warn.mock.calls[0]?.[1] as string).length).toBe(4_000)
  })
})

it('reads messages strictly', () => {
  const circle: JsonObject = { jsonrpc: '2.0', method: 'x' }
  circle.params = { circle }
  for (const odd of [null, 'x', [], {}, { jsonrpc: '1.0', method: 'x' }, { jsonrpc: '2.0', method: 5 }, { jsonrpc: '2.0', method: 'x', params: [] }, { jsonrpc: '2.0', id: {}, method: 'x' }, { jsonrpc: '2.0', id: NaN, method: 'x' }, { jsonrpc: '2.0', id: 1 }, circle, { jsonrpc: '2.0', method: 'x', params: { big: 'x'.repeat(300_000) } }, { jsonrpc: '2.0', method: 'x'.repeat(200) }]) {
    expect(read(odd)).toBe(null)
  }
  expect(read({ jsonrpc: '2.0', id: 0, method: 'x' })).toEqual({ kind: 'request', id: 0, method: 'x', params: {} })
  expect(read({ jsonrpc: '2.0', id: 'a', error: {} })).toEqual({ kind: 'answer', id: 'a' })
})

it('takes texts of a person alone, and addresses of the web', () => {
  const block = { type: 'text', text: ' a ' }
  expect(messageText({ role: 'user', content: [block, block] })).toBe('a \n a')
  for (const odd of [{ role: 'assistant', content: [block] }, { role: 'user', content: block }, { role: 'user', content: [{ type: 'image' }] }, { role: 'user', content: [] }, { role: 'user', content: [{ type: 'text', text: 'x'.repeat(20_000) }] }]) {
    expect(messageText(odd)).toBe(null)
  }
  expect(webAddress('https://EXAMPLE.com')?.href).toBe('https://example.com/')
})

it('takes what the model shall know as one text, of a bounded length', () => {
  const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
  expect(contextText({})).toBe('')
  expect(contextText({ content: [], structuredContent: {} })).toBe('')
  expect(contextText({ structuredContent: { a: 1 } })).toBe('{"a":1}')
  expect(contextText(text('é'.repeat(8 * 1024)))).toHaveLength(8 * 1024)
  for (const odd of [text('é'.repeat(8 * 1024 + 1)), text('a\0b'), text('a\ud800'), { content: 'a' }, { content: [{ type: 'resource_link', uri: 'a' }] }, { structuredContent: [1] }, { structuredContent: { big: 'x'.repeat(17_000) } }]) {
    expect(contextText(odd)).toBe(null)
  }
})
