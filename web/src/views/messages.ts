/**
 * What a view says, read strictly: it is no more to be trusted than the server that wrote it. The form is JSON-RPC 2.0,
 * the methods are those of MCP Apps (2026-01-26). The extension's own bridge (`AppBridge` of
 * `@modelcontextprotocol/ext-apps`) brings an MCP client and a schema library of 150 kB compressed for these few methods.
 */
import { isObject } from '@/wire/json'
import type { JsonObject } from '@/wire/types'

/** Characters of a message as JSON. */
const MAX_MESSAGE = 256 * 1024
const MAX_METHOD = 100
const MAX_ID = 200

export type RequestId = string | number

export type Said =
  | { kind: 'request'; id: RequestId; method: string; params: JsonObject }
  | { kind: 'notification'; method: string; params: JsonObject }
  | { kind: 'answer'; id: RequestId }

/** Codes of JSON-RPC. */
export const NO_SUCH_METHOD = -32601
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
export const MAX_CONTEXT = 16 * 1024

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
