/** What somebody pasted: a configuration in JSON, a command line, or an address. Pure. */
import { isObject } from '@/wire/json'
import type { ServerConfig } from '@/wire/restTypes'
import { transportOf } from './entry'

export type Recognised =
  | { kind: 'json' | 'command' | 'image' | 'url'; servers: { name: string; config: ServerConfig }[] }
  | { kind: 'nothing'; servers: [] }

const NOTHING: Recognised = { kind: 'nothing', servers: [] }
/** Options of `docker run` that take a value of their own. */
const DOCKER_VALUES = new Set(['-e', '--env', '--name', '-v', '--volume', '--mount', '--network', '-u', '--user', '-w', '--workdir'])

export function recognise(text: string): Recognised {
  const pasted = text.trim()
  if (pasted === '') return NOTHING
  if (pasted.startsWith('{')) return ofJson(pasted)
  if (/^https?:\/\//i.test(pasted)) return ofUrl(pasted)
  return ofCommand(words(pasted))
}

function ofJson(text: string): Recognised {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return NOTHING
  }
  if (!isObject(value)) return NOTHING
  const listed = value.mcpServers ?? value.servers
  if (isObject(listed)) {
    const servers = Object.entries(listed).flatMap(([name, config]) =>
      isServer(config) ? [{ name: nameFrom(name), config: known(config) }] : [],
    )
    return servers.length > 0 ? { kind: 'json', servers } : NOTHING
  }
  if (isServer(value)) return { kind: 'json', servers: [{ name: nameOf(value), config: known(value) }] }
  // `"name": { … }` without what stands around it.
  const [only, ...more] = Object.entries(value)
  if (only && more.length === 0 && isServer(only[1])) {
    return { kind: 'json', servers: [{ name: nameFrom(only[0]), config: known(only[1]) }] }
  }
  return NOTHING
}

function ofUrl(text: string): Recognised {
  if (!URL.canParse(text)) return NOTHING
  const url = new URL(text)
  const transport = /\/sse\/?$/.test(url.pathname) ? 'sse' : 'http'
  const host = url.hostname.split('.').filter((part) => !['www', 'mcp', 'api', 'com', 'org', 'net', 'io', 'dev'].includes(part))
  return { kind: 'url', servers: [{ name: nameFrom(host[0] ?? url.hostname), config: { transport, url: text } }] }
}

function ofCommand([command, ...args]: string[]): Recognised {
  if (command === undefined) return NOTHING
  if (command === 'docker' && args[0] === 'run') return ofDockerRun(args.slice(1))
  // A single word is as likely the beginning of something else.
  if (args.length === 0 && !/^[./]|[-_]/.test(command)) return NOTHING
  const config: ServerConfig = { transport: 'stdio', command, ...(args.length > 0 ? { args } : {}) }
  return { kind: 'command', servers: [{ name: nameOf(config), config }] }
}

function ofDockerRun(args: string[]): Recognised {
  const env: Record<string, string> = {}
  let at = 0
  while (args[at]?.startsWith('-')) {
    const [option = '', value] = splitOnce(args[at] ?? '', '=')
    const isEnv = option === '-e' || option === '--env'
    const takesNext = DOCKER_VALUES.has(option) && value === undefined
    const given = takesNext ? args[at + 1] : value
    if (isEnv && given) {
      const [name = '', content = ''] = splitOnce(given, '=')
      env[name] = content
    }
    at += takesNext ? 2 : 1
  }
  const [containerImage, ...rest] = args.slice(at)
  if (!containerImage) return NOTHING
  const config: ServerConfig = {
    transport: 'stdio-docker',
    containerImage,
    ...(rest.length > 0 ? { args: rest } : {}),
    ...(Object.keys(env).length > 0 ? { env } : {}),
  }
  const image = containerImage.split('/').at(-1)?.split(/[:@]/)[0]
  return { kind: 'image', servers: [{ name: nameFrom(image ?? 'server'), config }] }
}

function splitOnce(text: string, at: string): [string, string?] {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}

/** A name from the package or program that the command starts. */
function nameOf(config: ServerConfig): string {
  if (config.url) return ofUrl(config.url).servers[0]?.name ?? 'server'
  const runners = new Set(['npx', 'uvx', 'bunx', 'pipx', 'node', 'python', 'python3', 'uv', 'deno', 'run', 'exec', 'tool'])
  const candidates = [config.command ?? '', ...(config.args ?? [])].filter((word) => word && !word.startsWith('-'))
  const named = candidates.find((word) => !runners.has(word)) ?? candidates[0] ?? 'server'
  const last = named.replace(/@[\d.^~latest]+$/, '').split('/').at(-1) ?? named
  return nameFrom(last.replace(/^(mcp-server-|server-|mcp-)/, '').replace(/(-mcp-server|-mcp|\.\w+)$/, ''))
}

/** What the server takes as a name. */
export function nameFrom(text: string): string {
  return text.replace(/[^a-zA-Z0-9_-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 64) || 'server'
}

/** Words of a command line as a shell would split it; nothing is expanded. */
export function words(line: string): string[] {
  const found: string[] = []
  let word: string | null = null
  let quote: string | null = null
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? ''
    if (quote) {
      if (char === quote) quote = null
      else if (char === '\\' && quote === '"' && /["\\$`]/.test(line[at + 1] ?? '')) word += line[(at += 1)] ?? ''
      else word += char
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (char === '\\' && at + 1 < line.length) {
      at += 1
      // A line that goes on below.
      if (line[at] !== '\n') word = (word ?? '') + (line[at] ?? '')
    } else if (/\s/.test(char)) {
      if (word !== null) found.push(word)
      word = null
    } else word = (word ?? '') + char
  }
  if (word !== null) found.push(word)
  return found
}

function isServer(value: unknown): value is Record<string, unknown> {
  return isObject(value) && ['command', 'url', 'containerImage'].some((field) => typeof value[field] === 'string')
}

/** Other programs' files carry fields that only they know. */
function known(value: Record<string, unknown>): ServerConfig {
  const fields = ['transport', 'enabled', 'description', 'toolPrefix', 'includeTools', 'excludeTools', 'timeout', 'command', 'args', 'allowScripts', 'env', 'cwd', 'containerImage', 'containerEnv', 'workspace', 'network', 'url', 'headers']
  const { type, disabled, ...rest } = value
  const config = Object.fromEntries(Object.entries(rest).filter(([name]) => fields.includes(name))) as ServerConfig
  if (config.transport === undefined && (type === 'sse' || type === 'http' || type === 'stdio')) config.transport = type
  if (config.transport === undefined && type === 'streamable-http') config.transport = 'http'
  if (config.enabled === undefined && disabled === true) config.enabled = false
  askForInputs(config)
  // Editors on Windows start a runner by their shell.
  if (config.command === 'cmd' && config.args?.[0]?.toLowerCase() === '/c' && config.args[1]) {
    config.command = config.args[1]
    config.args = config.args.slice(2)
  }
  const words = config.command === 'docker' && config.args?.[0] === 'run' ? ofDockerRun(config.args.slice(1)) : null
  const image = words?.servers[0]?.config
  if (!image) return config
  // Values that `-e NAME` takes from outside stand in the entry's own environment.
  const env = { ...image.env, ...config.env }
  return { ...image, ...(Object.keys(env).length > 0 ? { env } : {}) }
}

/** What VS Code asks for when it starts a server (`${input:api-key}`) is a secret here, and asked for before. */
function askForInputs(config: ServerConfig) {
  const asked = (text: string) =>
    text.replace(/\$\{input:([^}]+)\}/g, (_, name: string) => `\${secret:${name.replace(/[^A-Za-z0-9_]+/g, '_').toUpperCase()}}`)
  for (const place of ['env', 'headers'] as const) {
    const values = config[place]
    if (values) config[place] = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, asked(String(value))]))
  }
  if (config.url) config.url = asked(config.url)
}

// Commands that fetch a package before they start it. Such a package is installed once instead.

const RUNNERS = new Set(['npx', 'bunx', 'pnpx', 'uvx', 'pipx', 'dlx'])
/** Programs that fetch by the word after their name. */
const WITH_WORD: Record<string, readonly string[]> = {
  npm: ['exec', 'x', 'init', 'create'],
  pnpm: ['dlx', 'create'],
  yarn: ['dlx', 'create'],
  bun: ['x'],
  uv: ['tool', 'run'],
  deno: ['run'],
}
/** Words that say that everything is there already. */
const OFFLINE = new Set(['--offline', '--no-install', '--no', '--cached-only', '--prefer-offline', '--no-index'])

/** The program that would fetch a package, if the entry has one. */
export function installer(config: ServerConfig): string | null {
  if (config.bundle) return 'bundle'
  const transport = transportOf(config)
  if (transport === 'http' || transport === 'sse') return null
  const words = transport === 'stdio' ? [config.command ?? '', ...(config.args ?? [])] : [...(config.args ?? [])]
  return fetching(words)
}

export function fetching([command = '', ...args]: readonly string[]): string | null {
  const name = (command.trim().split(/[/\\]/).at(-1) ?? '').replace(/\.(cmd|exe)$/, '')
  if (args.some((word) => OFFLINE.has(word))) return null
  if (RUNNERS.has(name)) return name
  const [word, ...more] = args.filter((argument) => !argument.startsWith('-'))
  const known = WITH_WORD[name]
  if (known === undefined || word === undefined) return null
  return fetches(name, word, args, more, known) ? `${name} ${word}` : null
}

/** A project's own environment, or a file that is there, fetches nothing. */
function fetches(name: string, word: string, args: string[], more: string[], known: readonly string[]): boolean {
  if (name === 'uv' && word === 'run') return args.some((argument) => argument.startsWith('--with'))
  if (name === 'deno' && word === 'run') return more.some((argument) => /^(npm|jsr|https?):/.test(argument))
  return known.includes(word)
}
