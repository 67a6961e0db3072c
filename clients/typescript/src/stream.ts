/** Server-sent events, read with `fetch`: unlike `EventSource` it sends a key, and says why it was refused. */
import { RequestError, type Problem } from './request.js'

export interface StreamEvent {
  name: string
  args: unknown[]
  /** The position behind this event, where it has one. */
  id: string | null
}

export interface StreamOptions {
  /** The id of the last event that is known: what came behind it follows. */
  lastId?: string
  signal?: AbortSignal
  /** Told when the stream broke off and is opened again. */
  onInterrupted?: () => void
}

/** Reasons after which the server is expected back without anybody's doing. */
const PASSING: ReadonlySet<string> = new Set(['offline', 'store_unavailable', 'server_stopping', 'too_many_requests'])
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5_000
/** Longer than two heartbeats: a stream that is silent for so long is dead. */
const SILENCE_MS = 60_000

/**
 * The events of a stream, over as many connections as it takes: each continues behind the last id, so nothing is
 * missing and nothing comes twice. It ends with the signal, and throws when the server refuses for good.
 */
export async function* follow(open: (headers: Record<string, string>, signal: AbortSignal) => Promise<Response>, options: StreamOptions = {}): AsyncGenerator<StreamEvent> {
  let lastId = options.lastId ?? null
  let pause = FIRST_PAUSE_MS
  while (!options.signal?.aborted) {
    const attempt = new AbortController()
    const leave = () => attempt.abort()
    options.signal?.addEventListener('abort', leave, { once: true })
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' }
      if (lastId !== null) headers['Last-Event-ID'] = lastId
      const response = await open(headers, attempt.signal)
      if (!response.ok) throw await refusal(response)
      for await (const event of read(response, attempt)) {
        pause = FIRST_PAUSE_MS
        if (event.id !== null) lastId = event.id
        yield event
        if (event.name === 'error') throw ended(event)
      }
    } catch (error) {
      if (options.signal?.aborted) return
      if (error instanceof RequestError && !PASSING.has(error.code)) throw error
    } finally {
      options.signal?.removeEventListener('abort', leave)
      attempt.abort()
    }
    options.onInterrupted?.()
    await sleep(pause, options.signal)
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
  }
}

async function* read(response: Response, attempt: AbortController): AsyncGenerator<StreamEvent> {
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const silence = setTimeout(() => attempt.abort(), SILENCE_MS)
    const { done, value } = await reader.read().finally(() => clearTimeout(silence))
    if (done) return
    text += value
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = eventOf(block)
      if (event) yield event
    }
  }
}

/** An event of its lines; nothing for a heartbeat. */
export function eventOf(block: string): StreamEvent | null {
  let name: string | null = null
  let id: string | null = null
  const data: string[] = []
  for (const line of block.split('\n')) {
    const at = line.indexOf(':')
    if (at <= 0) continue
    const value = line.slice(at + 1).replace(/^ /, '')
    const field = line.slice(0, at)
    if (field === 'event') name = value
    else if (field === 'id') id = value
    else if (field === 'data') data.push(value)
  }
  return name === null ? null : { name, id, args: JSON.parse(data.join('\n')) as unknown[] }
}

function ended({ args }: StreamEvent): RequestError {
  const [detail, why] = args as [string, { code?: string } | undefined]
  return new RequestError(0, { detail, ...(why?.code === undefined ? {} : { code: why.code }) })
}

async function refusal(response: Response): Promise<RequestError> {
  const problem = (await response.json().catch(() => ({}))) as Problem
  return new RequestError(response.status, problem)
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}
