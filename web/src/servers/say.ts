/** Words for servers that two pages say. */
import { t } from '@/locales'
import { shortCount } from '@/locales/format'
import type { GlyphState } from '@/glyph/StateGlyph.vue'
import { RequestError, type ServerItem } from '@/wire/rest'
import { looseLines, type FieldProblem } from './change'
import type { Draft } from './secrets'

/** Where it runs, what it offers and what that costs. */
export function facts(item: ServerItem): string {
  const { toolCount, enabledTools, definitionTokens } = item
  return [
    t(`servers.where.${item.source === 'bundled' ? 'bundled' : item.transport}`),
    toolCount === null ? '' : t('servers.tools', { enabled: enabledTools ?? toolCount, total: toolCount }),
    definitionTokens === null ? '' : t('servers.tokens', { n: shortCount(definitionTokens) }),
    t(`servers.source.${item.source}`),
  ]
    .filter(Boolean)
    .join(' · ')
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
    unknown: 'waits',
  }
  return states[item.status]
}

export function reasonOf(error: unknown): string {
  return error instanceof RequestError ? error.message : ''
}

/** Lines of an entry that are not finished, each at its field. */
export function looseProblems(draft: Draft): FieldProblem[] {
  return looseLines(draft).map(({ field, line }) => ({
    field,
    message: t(field === 'headers' ? 'servers.looseHeader' : 'servers.looseLine', { line }),
  }))
}
