/** Words for servers that two pages say. */
import type { GlyphState } from '@/ui/StateGlyph.vue'
import { t } from '@/locales'
import { shortCount } from '@/locales/format'
import { fromWords, looseLines, type Conflict, type FieldProblem } from './entry'
import type { Draft } from './secrets'
import { visibleHost } from '@/text/hiddenCharacters'
import type { ServerConfig, ServerItem } from '@/wire/restTypes'
import type { RunsIn } from '@/wire/types'
import './texts.en.json'

/** Where it runs, what it offers and what that costs. */
export function facts(item: ServerItem): string {
  const { toolCount, enabledTools, definitionTokens } = item
  return [
    whereItRuns(item),
    typeof toolCount === 'number' ? t('servers.tools', { enabled: enabledTools ?? toolCount, total: toolCount }) : '',
    typeof definitionTokens === 'number' ? t('servers.tokens', { n: shortCount(definitionTokens) }) : '',
    t(`servers.source.${item.source}`),
  ]
    .filter(Boolean)
    .join(' · ')
}

/** The place, with the hosts that it may reach from there. */
function whereItRuns({ source, transport, runsIn }: ServerItem): string {
  // The description of the door says no more than that it is an object.
  const { kind, hosts } = runsIn as unknown as RunsIn
  if (kind === 'remote' || hosts.length === 0) return t(`servers.where.${source === 'bundled' ? 'bundled' : transport}`)
  return t(`approval.runsIn.${kind}Open`, { hosts: hosts.map(visibleHost).join(', ') })
}

/** Models choose worse among more tools, and each definition is sent with each request. */
const MANY_TOOLS = 100

/** What it costs that the model is told of so many tools; nothing where they are few. */
export function costOf(items: ServerItem[]): string {
  const enabled = items.filter((item) => item.enabled)
  const total = (of: (item: ServerItem) => number | null | undefined) => enabled.reduce((sum, item) => sum + (of(item) ?? 0), 0)
  const tools = total((item) => item.enabledTools)
  if (tools <= MANY_TOOLS) return ''
  return t('servers.manyTools', { tools, tokens: shortCount(total((item) => item.definitionTokens)) })
}

export function stateWords(item: ServerItem): string {
  return t(`servers.state.${item.enabled ? item.status : 'off'}`)
}

export function glyph(item: ServerItem): GlyphState {
  if (!item.enabled) return 'stopped'
  const states: Record<ServerItem['status'], GlyphState> = {
    healthy: 'done',
    unhealthy: 'failed',
    reconnecting: 'running',
    disconnected: 'stopped',
    unauthorized: 'waits',
    unknown: 'waits',
  }
  return states[item.status]
}

/** Lines of an entry that are not finished, each at its field. */
export function looseProblems(draft: Draft): FieldProblem[] {
  return looseLines(draft).map(({ field, line }) => ({
    field,
    message: t(field === 'headers' ? 'servers.looseHeader' : 'servers.looseLine', { line }),
  }))
}

/** What somebody else changed meanwhile, each at its field. */
export function conflictProblems(conflicts: Conflict[], now: ServerConfig): FieldProblem[] {
  return conflicts.map(({ field, name, isOurs }) => {
    if (name !== undefined) return { field: `${field}.${name}`, message: t('servers.edit.clash') }
    if (!isOurs) return { field, message: t('servers.edit.changedMeanwhile') }
    const value = oneLine(now[field])
    return { field, message: value === '' ? t('servers.edit.clash') : t('servers.edit.clashWith', { value }) }
  })
}

function oneLine(value: ServerConfig[keyof ServerConfig]): string {
  if (Array.isArray(value)) return fromWords(value).replaceAll('\n', ' ')
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}
