/**
 * What a view asks of its own server through the page. A call goes into the session like any other: rules and people
 * decide it, and what comes of it is read from the conversation, so that nothing is lost with a connection.
 */
import type { Commands } from 'sepal-client'
import type { Ack, CommandError } from '@/wire/link'
import type { CallView, JsonObject } from '@/wire/types'
import { NOT_NOW, WRONG_PARAMS } from './bridge'
import { resultOf } from './surroundings'

export type Answer = { result: JsonObject } | { error: { code: number; message: string } }

const MAX_ADDRESS = 4_096
/** Reads of one view at a time, and within a minute. */
const MOST_READS = 4
const MOST_A_MINUTE = 60

/** Resources of its own server for one showing of a view: the server is that of its call, whatever the view says. */
export function viewReads(read: (uri: string) => Promise<JsonObject>): (params: JsonObject) => Promise<Answer> {
  let running = 0
  let times: number[] = []
  return async ({ uri }) => {
    if (typeof uri !== 'string' || uri === '' || uri.length > MAX_ADDRESS) return wrong(`uri is a text of 1 to ${MAX_ADDRESS} characters`)
    times = times.filter((time) => time > performance.now() - 60_000)
    if (running >= MOST_READS || times.length >= MOST_A_MINUTE) return { error: { code: NOT_NOW, message: `a view reads ${MOST_READS} resources at a time, and ${MOST_A_MINUTE} within a minute` } }
    times.push(performance.now())
    running += 1
    try {
      return { result: await read(uri) }
    } catch (error) {
      return { error: { code: NOT_NOW, message: error instanceof Error ? error.message : 'Sepal did not answer' } }
    } finally {
      running -= 1
    }
  }
}

/** What the page has to have, so that a view can ask for calls. */
export interface CallsDoor {
  /** Sends a command to the session. */
  command: (name: keyof Commands, payload: JsonObject) => Promise<Ack>
  /** Resolves when the session is connected. */
  connected: () => Promise<void>
}

const MAX_NAME = 128
/** Characters of arguments; the server counts bytes. */
const MAX_ARGUMENTS = 64 * 1024
const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'rejected', 'unknown'])
/** The server's own limits of a view, and of what it was refused, are no mistakes of its author. */
const MISTAKES: ReadonlySet<string> = new Set(['invalid_arguments', 'too_large', 'no_such_call'])

export interface ViewCalls {
  /** Asks for a call of a tool of the view's server; resolves with what came of it. */
  call: (params: JsonObject, key: unknown) => Promise<Answer>
  /** The view waits for one of them no more. */
  forget: (key: unknown) => void
  /** Looks what has come of them. */
  look: (calls: Iterable<CallView>) => void
  /** The view is over: what nobody has let run is not wanted any more. */
  close: () => void
}

/** The calls of one showing of the view of that call. */
export function viewCalls(callId: string, { command, connected }: CallsDoor): ViewCalls {
  const viewId = crypto.randomUUID()
  const waiting = new Map<string, { key: unknown; settle: (answer: Answer) => void }>()
  let isClosed = false
  let hasAsked = false

  /** Sent until the server has answered: a repeat of the request is known there. */
  async function send(payload: JsonObject): Promise<Ack> {
    for (;;) {
      const ack = await command('view:call', payload)
      if (ack.ok || ack.error.code !== 'offline' || isClosed) return ack
      await connected()
    }
  }

  async function call({ name, arguments: given = {} }: JsonObject, key: unknown): Promise<Answer> {
    if (typeof name !== 'string' || name === '' || name.length > MAX_NAME) return wrong(`name is a text of 1 to ${MAX_NAME} characters`)
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return wrong('arguments is an object')
    if (JSON.stringify(given).length > MAX_ARGUMENTS) return wrong(`arguments have at most ${MAX_ARGUMENTS} bytes`)
    hasAsked = true
    const requestId = crypto.randomUUID()
    const ended = new Promise<Answer>((settle) => waiting.set(requestId, { key, settle }))
    const ack = await send({ callId, viewId, requestId, name, arguments: given })
    if (ack.ok) return ended
    waiting.delete(requestId)
    return refusal(ack.error)
  }

  function forget(key: unknown): void {
    for (const [requestId, { key: known }] of waiting) {
      if (known !== key) continue
      waiting.delete(requestId)
      void command('view:close', { viewId, requestId })
    }
  }

  function look(calls: Iterable<CallView>): void {
    if (waiting.size === 0) return
    for (const call of calls) {
      const requestId = call.askedBy?.viewId === viewId ? call.askedBy.requestId : ''
      const asked = waiting.get(requestId)
      if (asked === undefined || !ENDED.has(call.status) || call.output === undefined) continue
      waiting.delete(requestId)
      asked.settle({ result: resultOf(call) })
    }
  }

  function close(): void {
    isClosed = true
    waiting.clear()
    if (hasAsked) void command('view:close', { viewId })
  }

  return { call, forget, look, close }
}

function wrong(message: string): Answer {
  return { error: { code: WRONG_PARAMS, message } }
}

function refusal({ code, message }: CommandError): Answer {
  return { error: { code: MISTAKES.has(code) ? WRONG_PARAMS : NOT_NOW, message: message || `Sepal did not take it: ${code}` } }
}
