/** A stand-in for Chat Completions on loopback: it says and calls what a test wants. */
import { createServer } from 'node:http'
import { once } from 'node:events'

const USAGE = [11, 7]

export class ModelStandIn {
  constructor(server) {
    this.server = server
    this.replies = []
    this.requests = []
  }

  static async start() {
    const model = new ModelStandIn(createServer((request, response) => void model.answer(request, response)))
    model.server.listen(0, '127.0.0.1')
    await once(model.server, 'listening')
    return model
  }

  /** The settings with which a gateway asks this model. */
  get env() {
    const { port } = this.server.address()
    return { LLM_PROVIDER: 'openai-compatible', OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`, SPL_LLM_MODEL: 'stub' }
  }

  /** Pieces of text, one chunk each, `paceMs` apart; then the calls `[name, args]`. `usage`: tokens in and out. */
  willStream(pieces, { calls = [], paceMs = 0, usage = USAGE } = {}) {
    this.replies.push({ pieces, calls, paceMs, usage })
    return this
  }

  willSay(text, usage = USAGE) {
    return this.willStream([text], { usage })
  }

  willCall(...calls) {
    return this.willStream([], { calls })
  }

  async answer(request, response) {
    let body = ''
    for await (const part of request) body += part
    if (!request.url.endsWith('/chat/completions')) {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'stub', object: 'model' }] }))
      return
    }
    this.requests.push(JSON.parse(body))
    const { pieces, calls, paceMs, usage } = this.replies.shift() ?? { pieces: ['I have nothing more to say.'], calls: [], paceMs: 0, usage: USAGE }
    const [prompt_tokens, completion_tokens] = usage
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    const chunk = (delta, reason = null) =>
      write(response, { object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })
    const began = performance.now()
    for (const [at, content] of pieces.entries()) {
      await pace(began + at * paceMs)
      chunk({ content })
    }
    calls.forEach(([name, args], index) => {
      chunk({ tool_calls: [{ index, id: `call_stub_${index}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }] })
    })
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop')
    write(response, { choices: [], usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens } })
    response.end('data: [DONE]\n\n')
  }

  close() {
    this.server.closeAllConnections()
    this.server.close()
  }
}

function write(response, value) {
  response.write(`data: ${JSON.stringify(value)}\n\n`)
}

/** Until a moment on the clock, so that many small pauses do not add up their lateness. */
function pace(moment) {
  const left = moment - performance.now()
  return left <= 0 ? undefined : new Promise((resolve) => setTimeout(resolve, left))
}
