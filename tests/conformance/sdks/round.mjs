// round.mjs PACKAGE URL KEY: one round with a version of the official SDK for JavaScript. It says as JSON which revision
// was agreed on, what the agent answered, and what the SDK complained about.

const [name, url, key] = process.argv.slice(2)
const problems = []
const isOldest = name === 'sdk-1.0'

const load = async () => {
  if (name.startsWith('client-')) return import(name)
  const { Client } = await import(`${name}/client/index.js`)
  // The first versions know the two addresses of HTTP with SSE alone, want a browser's EventSource, and say no key.
  if (isOldest) {
    const plain = globalThis.fetch
    globalThis.fetch = (address, init) => {
      const all = new Headers(init?.headers)
      for (const [name, value] of Object.entries(headers)) all.set(name, value)
      return plain(address, { ...init, headers: all })
    }
    globalThis.EventSource = (await import('eventsource')).EventSource
    const { SSEClientTransport } = await import(`${name}/client/sse.js`)
    return { Client, StreamableHTTPClientTransport: SSEClientTransport }
  }
  const { StreamableHTTPClientTransport } = await import(`${name}/client/streamableHttp.js`)
  return { Client, StreamableHTTPClientTransport }
}

const headers = { authorization: `Bearer ${key}` }
const { Client, StreamableHTTPClientTransport } = await load()
const transport = new StreamableHTTPClientTransport(new URL(isOldest ? url.replace(/mcp$/, 'sse') : url), { requestInit: { headers } })
let revision
const send = transport.send.bind(transport)
transport.send = (message, ...more) => {
  const hear = transport.onmessage
  if (message.method === 'initialize' && !transport.isHeard) {
    transport.isHeard = true
    transport.onmessage = (answer, ...rest) => {
      revision ??= answer.result?.protocolVersion
      hear?.(answer, ...rest)
    }
  }
  return send(message, ...more)
}
const options = name.startsWith('client-') ? { versionNegotiation: { mode: 'auto' } } : {}
const client = new Client({ name: 'round', version: '1' }, { capabilities: {}, ...options })
// Streams end when the client leaves.
let isLeaving = false
client.onerror = (error) => isLeaving || problems.push(String(error?.message ?? error))
await client.connect(transport)
revision ??= client.getNegotiatedProtocolVersion?.()
const { tools } = await client.listTools()
const called = await client.callTool({ name: tools[0].name, arguments: { input: 'hello' } })
if (!name.startsWith('client-')) await client.ping()
isLeaving = true
await transport.terminateSession?.()
await client.close()
console.log(JSON.stringify({ revision, tools: tools.map((tool) => tool.name), isError: called.isError === true, text: called.content[0].text, problems }))
process.exit(0)
