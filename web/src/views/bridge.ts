/**
 * Between a view and the page: one frame, one document, the handshake, and the few things that a view may ask for.
 * What it asks of its server goes through the page, because nothing may go past policy, queue and audit.
 */
import { isObject } from '@/wire/json'
import type { JsonObject } from '@/wire/types'
import type { Answer } from './requests'

const PROTOCOL = '2026-01-26'
/** A view that has not begun to speak by then is said to be silent. */
const SILENT_MS = 15_000
/** How long a view may take to end. */
const TEARDOWN_MS = 500
/** Messages of one second; more are not heard, and a view that goes on like this is closed. */
const MOST_A_SECOND = 200
const MOST_UNHEARD = 2_000
/** Texts for the composer from one view. */
const MOST_TEXTS = 20

/** Why a view is over, or in doubt. */
export type Trouble = 'silent' | 'left' | 'flooded' | 'ended' | 'grasped'

/** What the page does for a view. */
export interface ViewHost {
  name: string
  version: string
  /** What is known of the surroundings (`McpUiHostContext`). */
  context: () => JsonObject
  /** The view speaks: it can be told things. */
  ready: () => void
  /** It wants that height, in CSS pixels. */
  resize: (height: number) => void
  /** Asks the person; false where they said no, or something is being asked already. */
  openLink: (url: URL) => Promise<boolean>
  /** Puts a text into the composer; false where that is not possible now. */
  propose: (text: string) => boolean
  /** It can be shown in these modes, by its own word. */
  declare: (modes: unknown) => void
  /** It wants to be shown in that mode; the answer is the one that it has then. */
  display: (mode: unknown) => Promise<string>
  /** Lets the model know that with the person's next message, in place of what was said before; empty = nothing. The answer is why not. */
  know?: (text: string) => string | null
  /** Asks for a call of a tool of the view's server; none = the person may not. */
  call?: (params: JsonObject, key: RequestId) => Promise<Answer>
  /** Reads a resource of the view's server; none = the person may not. */
  read?: (params: JsonObject) => Promise<Answer>
  /** The view waits for that request no more. */
  forget?: (key: RequestId) => void
  trouble: (what: Trouble) => void
}

export interface Bridge {
  /** Tells the view something; before it speaks, nothing is told. */
  tell: (method: string, params: JsonObject) => void
  /** Lets it end, and hears it no more. */
  close: () => Promise<void>
}

/** What a view cannot have, in words for whoever wrote it. */
const REFUSALS = new Map(Object.entries({
  'tools/call': 'Sepal lets no view call tools here: it announces no serverTools',
  'tools/list': 'Sepal does not list tools for views; their server knows them',
  'resources/read': 'Sepal lets no view read resources here: it announces no serverResources',
  'resources/list': 'Sepal does not list resources for views; their server knows them',
  'resources/templates/list': 'Sepal does not list resources for views; their server knows them',
  'prompts/list': 'Sepal does not give views prompts',
  'sampling/createMessage': 'Sepal does not let views ask the model: it announces no sampling',
  'ui/update-model-context': 'Sepal lets no view add to what the model reads here: it announces no updateModelContext',
  'ui/download-file': 'Sepal does not save files for views: it announces no downloadFile',
}))

export function openBridge(frame: HTMLIFrameElement, html: string, host: ViewHost): Bridge {
  let state: 'empty' | 'written' | 'speaking' | 'closed' = 'empty'
  let [second, heard, unheard, texts] = [0, 0, 0, 0]
  let ended: (() => void) | undefined
  const silence = setTimeout(() => host.trouble('silent'), SILENT_MS)

  /** A sandboxed frame has no origin that could be named; where it may go to, the page's policy says. */
  function post(message: JsonObject): void {
    frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, '*')
  }

  function listen(event: MessageEvent): void {
    if (event.source === null || event.source !== frame.contentWindow || isTooMuch()) return
    const said = read(event.data)
    if (said === null) return
    if (said.kind === 'answer') ended?.()
    else if (said.kind === 'notification') notified(said.method, said.params)
    else void answer(said.id, said.method, said.params)
  }

  function isTooMuch(): boolean {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) [second, heard] = [now, 0]
    heard += 1
    if (heard <= MOST_A_SECOND) return false
    unheard += 1
    if (unheard === MOST_UNHEARD) stop('flooded')
    return true
  }

  function notified(method: string, params: JsonObject): void {
    if (method === 'ui/notifications/sandbox-proxy-ready') begin()
    else if (method === 'ui/notifications/initialized') speaks()
    else if (method === 'ui/notifications/size-changed') resize(params.height)
    else if (method === 'ui/notifications/request-teardown') host.trouble('ended')
    else if (method === 'notifications/message') log(host.name, params)
    else if (method === 'notifications/cancelled' && (typeof params.requestId === 'string' || typeof params.requestId === 'number')) host.forget?.(params.requestId)
  }

  /** The empty frame is there. A second one means that the view has left its own page. */
  function begin(): void {
    if (state !== 'empty') return stop('left')
    state = 'written'
    post({ method: 'ui/notifications/sandbox-resource-ready', params: { html } })
  }

  function speaks(): void {
    if (state !== 'written') return
    state = 'speaking'
    clearTimeout(silence)
    host.ready()
  }

  function resize(height: unknown): void {
    if (typeof height === 'number' && Number.isFinite(height) && height > 0) host.resize(height)
  }

  async function answer(id: RequestId, method: string, params: JsonObject): Promise<void> {
    const answered = await answerTo(method, params, id)
    if (state !== 'closed') post({ id, ...answered })
  }

  async function answerTo(method: string, params: JsonObject, id: RequestId): Promise<Answer> {
    switch (method) {
      case 'ui/initialize':
        host.declare(isObject(params.appCapabilities) ? params.appCapabilities.availableDisplayModes : undefined)
        return { result: greeting() }
      case 'ping':
        return { result: {} }
      case 'ui/request-display-mode':
        return { result: { mode: await host.display(params.mode) } }
      case 'ui/open-link': {
        const url = webAddress(params.url)
        if (url === null) return refused(WRONG_PARAMS, 'url is an address with http or https, without user and password, of at most 2048 characters')
        return { result: (await host.openLink(url)) ? {} : { isError: true } }
      }
      case 'ui/message':
        return proposed(params)
      case 'ui/update-model-context':
        if (host.know && state === 'speaking') return known(params, host.know)
        break
      case 'tools/call':
        if (host.call && state === 'speaking') return host.call(params, id)
        break
      case 'resources/read':
        if (host.read && state === 'speaking') return host.read(params)
        break
    }
    return refused(NO_SUCH_METHOD, REFUSALS.get(method) ?? `Sepal knows no method ${method}`)
  }

  function proposed(params: JsonObject): Answer {
    const text = messageText(params)
    if (text === null) return refused(WRONG_PARAMS, 'a message has the role user, and blocks of type text with 1 to 16384 characters in all')
    // A text that comes while somebody types would be sent as theirs.
    if (texts >= MOST_TEXTS || document.activeElement !== frame || !host.propose(text)) return refused(NOT_NOW, 'a text is taken only while the person uses the view, and at most 20 times')
    texts += 1
    return { result: {} }
  }

  function known(params: JsonObject, know: NonNullable<ViewHost['know']>): Answer {
    const text = contextText(params)
    if (text === null) return refused(WRONG_PARAMS, `content has blocks of type text, structuredContent is an object, and together they have at most ${MAX_CONTEXT} bytes`)
    const problem = know(text)
    return problem === null ? { result: {} } : refused(NOT_NOW, problem)
  }

  function greeting(): JsonObject {
    const more = { ...(host.know && { updateModelContext: { text: {}, structuredContent: {} } }), ...(host.call && { serverTools: {} }), ...(host.read && { serverResources: {} }) }
    return {
      protocolVersion: PROTOCOL,
      hostInfo: { name: 'Sepal', version: host.version },
      hostCapabilities: { openLinks: {}, logging: {}, message: { text: {} }, ...more },
      hostContext: host.context(),
    }
  }

  function stop(what: Trouble): void {
    unhear()
    host.trouble(what)
  }

  function unhear(): void {
    state = 'closed'
    clearTimeout(silence)
    removeEventListener('message', listen)
  }

  async function close(): Promise<void> {
    if (state === 'speaking') {
      const done = new Promise<void>((resolve) => {
        ended = resolve
        setTimeout(resolve, TEARDOWN_MS)
      })
      post({ id: 'teardown', method: 'ui/resource-teardown', params: {} })
      await done
    }
    unhear()
  }

  addEventListener('message', listen)
  return { tell: (method, params) => void (state === 'speaking' && post({ method, params })), close }
}

function refused(code: number, message: string): Answer {
  return { error: { code, message } }
}

const LEVELS = new Map<unknown, 'debug' | 'info'>([['debug', 'debug'], ['info', 'info'], ['notice', 'info']])

/** What a view logs is for whoever looks into the browser, never for the page. */
function log(server: string, { level, data }: JsonObject): void {
  const text = isObject(data) || Array.isArray(data) ? JSON.stringify(data) : String(data)
  // eslint-disable-next-line no-console -- it is what a view asks for
  console[LEVELS.get(level) ?? 'warn'](`[view of ${server}]`, text.slice(0, 4_000))
}

// Reads the messages of a view strictly: a view is no more to be trusted than the server that wrote it. The form is JSON-RPC 2.0,
// the methods are those of MCP Apps (2026-01-26). The extension's own bridge (`AppBridge` of
// `@modelcontextprotocol/ext-apps`) brings an MCP client and a schema library of 150 kB compressed for these few methods.

/** Characters of a message as JSON. */
const MAX_MESSAGE = 256 * 1024
const MAX_METHOD = 100
const MAX_ID = 200

type RequestId = string | number

type Said =
  | { kind: 'request'; id: RequestId; method: string; params: JsonObject }
  | { kind: 'notification'; method: string; params: JsonObject }
  | { kind: 'answer'; id: RequestId }

/** Codes of JSON-RPC. */
const NO_SUCH_METHOD = -32601
export const WRONG_PARAMS = -32602
/** Our own: the person or the page does not want it now. */
export const NOT_NOW = -32000

/** What was said, or null for what is no message, or one too large. */
export function read(data: unknown): Said | null {
  if (!isObject(data) || data.jsonrpc !== '2.0' || sizeOf(data) > MAX_MESSAGE) return null
  const { id, method, params } = data
  if (method === undefined) return isId(id) && ('result' in data || 'error' in data) ? { kind: 'answer', id } : null
  if (typeof method !== 'string' || method.length > MAX_METHOD) return null
  if (params !== undefined && !isObject(params)) return null
  if (id === undefined) return { kind: 'notification', method, params: params ?? {} }
  return isId(id) ? { kind: 'request', id, method, params: params ?? {} } : null
}

function isId(id: unknown): id is RequestId {
  return typeof id === 'number' ? Number.isFinite(id) : typeof id === 'string' && id.length <= MAX_ID
}

/** What cannot be written as JSON is too large for everything. */
function sizeOf(data: unknown): number {
  try {
    return JSON.stringify(data).length
  } catch {
    return Infinity
  }
}

const MAX_ADDRESS = 2_048

/** An address that may be opened for a person who agrees: of the web, without user and password. */
export function webAddress(text: unknown): URL | null {
  if (typeof text !== 'string' || text.length > MAX_ADDRESS || !URL.canParse(text)) return null
  const url = new URL(text)
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  return isWeb && url.username === '' && url.password === '' ? url : null
}

const MAX_TEXT = 16 * 1024

/** The text of a message that a view proposes; null for what is more than text, or none. */
export function messageText({ role, content }: JsonObject): string | null {
  const text = role === 'user' ? textsOf(content)?.join('\n').trim() : ''
  return !text || text.length > MAX_TEXT ? null : text
}

/** UTF-8 bytes of what one view lets the model know; the gateway takes no more. */
const MAX_CONTEXT = 16 * 1024

/** What a view lets the model know, as one text; empty where it is nothing any more, null for what is no text, or too long. */
export function contextText({ content = [], structuredContent = {} }: JsonObject): string | null {
  const texts = textsOf(content)
  if (texts === null || !isObject(structuredContent)) return null
  const data = Object.keys(structuredContent).length > 0 ? [JSON.stringify(structuredContent)] : []
  const text = [...texts, ...data].join('\n').trim()
  // No message can hold these.
  return /[\0\p{Surrogate}]/u.test(text) || new TextEncoder().encode(text).length > MAX_CONTEXT ? null : text
}

/** The texts of content blocks; null where one is something else. */
function textsOf(content: unknown): string[] | null {
  if (!Array.isArray(content)) return null
  const texts = content.flatMap((block: unknown) => (isObject(block) && block.type === 'text' && typeof block.text === 'string' ? [block.text] : []))
  return texts.length === content.length ? texts : null
}
