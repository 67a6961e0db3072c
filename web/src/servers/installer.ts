/** Commands that fetch a package before they start it. Such a package is installed once instead. Pure. */
import type { ServerConfig } from '@/wire/restTypes'
import { transportOf } from './entry'

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
