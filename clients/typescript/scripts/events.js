/** Writes `src/events.generated.ts` from docs/asyncapi.json: the schemas, and the arguments of each event and command. */
import { readFileSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

const PREFIX = '#/components/schemas/'
const described = JSON.parse(readFileSync(new URL('../../../docs/asyncapi.json', import.meta.url), 'utf8'))
const { messages, schemas } = described.components

/** The generator knows tuples by their modern name. */
function modern(schema) {
  if (Array.isArray(schema)) return schema.map(modern)
  if (schema === null || typeof schema !== 'object') return schema
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, modern(value)]))
}

function typeOf(schema) {
  if (schema.$ref) return `Schemas['${schema.$ref.slice(PREFIX.length)}']`
  if (schema.oneOf) return schema.oneOf.map(typeOf).join(' | ')
  if (schema.allOf) return schema.allOf.map(typeOf).join(' & ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.type === 'array') {
    const items = schema.items.map((item, at) => at < schema.minItems ? typeOf(item) : `(${typeOf(item)})?`)
    return `[${items.join(', ')}]`
  }
  if (schema.type === 'object' && schema.properties) {
    const required = new Set(schema.required ?? [])
    const fields = Object.entries(schema.properties).map(([name, value]) => `${name}${required.has(name) ? '' : '?'}: ${typeOf(value)}`)
    return `{ ${fields.join('; ')} }`
  }
  if (schema.type === 'object') return 'Record<string, unknown>'
  const types = [schema.type].flat()
  return types.map((type) => ({ string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' })[type] ?? 'unknown').join(' | ')
}

function map(name, about, channel, isWanted) {
  const keys = Object.keys(described.channels[channel].messages).filter(isWanted)
  const lines = keys.map((key) => `  /** ${messages[key].summary} */\n  '${messages[key].name}': ${typeOf(messages[key].payload)}\n`)
  return `/** ${about} */\nexport interface ${name} {\n${lines.join('')}}\n`
}

const tree = await openapiTS(
  JSON.stringify({ openapi: '3.1.0', info: { title: 'Sepal', version: '1' }, paths: {}, components: { schemas: modern(schemas) } }),
  { emptyObjectsUnknown: true },
)
const isCommand = (key) => key.startsWith('command_')
writeFileSync(
  new URL('../src/events.generated.ts', import.meta.url),
  [
    '/* Written by `npm run generate` from docs/asyncapi.json. */\n',
    astToString(tree),
    "\ntype Schemas = components['schemas']\n\n",
    map('SessionEvents', 'The arguments of the events of a session.', 'session', (key) => !isCommand(key) && key !== 'acknowledgement'),
    '\n',
    map('ListEvents', "The arguments of the events of a person's session list.", 'person', () => true),
    '\n',
    map('Commands', 'The arguments of the commands of the socket.', 'session', isCommand),
    '\n',
    `/** What answers a command. */\nexport type Acknowledgement = ${typeOf(messages.acknowledgement.payload)}[0]\n`,
  ].join(''),
)
