/** A person at a page of the gateway, without the page: signs in, and talks over Socket.IO. */
import { createRequire } from 'node:module'
import { request as httpsRequest } from 'node:https'
import { request as httpRequest } from 'node:http'
import { until } from '../browser/support/until.mjs'

const { io } = createRequire(new URL('../browser/package.json', import.meta.url))('socket.io-client')

/** Streaming and a sandbox's cold start on a busy machine. */
const WITHIN_MS = 60_000

/**
 * One request as a browser's page would make it. `trust` is the certificate to believe.
 * @returns {Promise<{status: number, headers: object, text: string}>}
 */
export function ask(url, { method = 'GET', headers = {}, body, trust } = {}) {
  const send = url.startsWith('https:') ? httpsRequest : httpRequest
  const origin = new URL(url).origin
  const text = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const asked = send(url, {
      method,
      ca: trust,
      headers: { ...(text && { 'content-type': 'application/json', origin }), ...headers },
      timeout: WITHIN_MS,
    })
    asked.once('error', reject)
    asked.once('timeout', () => asked.destroy(new Error(`${url} does not answer`)))
    asked.once('response', (answer) => {
      const pieces = []
      answer.on('data', (piece) => pieces.push(piece))
      answer.once('error', reject)
      answer.once('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(pieces).toString() }))
    })
    asked.end(text)
  })
}

/** Signs in below `base` (with a slash at its end). */
export async function signIn(base, { name, password, trust }) {
  const answer = await ask(`${base}api/auth/login`, { method: 'POST', body: { name, password }, trust })
  if (answer.status !== 200) throw new Error(`sign-in: ${answer.status} ${answer.text}`)
  const [setCookie] = answer.headers['set-cookie']
  return { cookie: setCookie.split(';')[0], setCookie, me: JSON.parse(answer.text) }
}

/** A socket that keeps everything it hears. */
export class Person {
  constructor(base, { cookie, transports, sessionId, trust }) {
    const { origin, pathname } = new URL(base)
    this.heard = []
    this.socket = io(origin, {
      path: `${pathname}socket.io`,
      transports,
      ca: trust,
      auth: { ...(sessionId && { sessionId }) },
      extraHeaders: { cookie, origin },
      reconnection: false,
      forceNew: true,
    })
    this.socket.onAny((name, ...args) => this.heard.push({ name, args, last: args.at(-1) ?? {} }))
    this.socket.on('connect_error', (error) => (this.refusal = error.message))
  }

  all(name) {
    return this.heard.filter((event) => event.name === name)
  }

  wait(name, nth = 1) {
    return until(`${name} number ${nth}${this.refusal ? ` (${this.refusal})` : ''}`, () => this.all(name)[nth - 1], WITHIN_MS)
  }

  async ready() {
    return (await this.wait('system:ready')).args[0]
  }

  async ok(name, payload) {
    const answer = await this.socket.timeout(WITHIN_MS).emitWithAck(name, payload)
    if (!answer.ok) throw new Error(`${name}: ${JSON.stringify(answer)}`)
    return answer
  }

  /** Approves the first card, and gives what the tool said. */
  async approveFirst() {
    const { last } = await this.wait('tool:approval_required')
    await this.ok('tool:approval', { callId: last.callId, approved: true })
    return (await this.wait('tool:output')).args[0]
  }

  close() {
    this.socket.disconnect()
  }
}
