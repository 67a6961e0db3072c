/** What the last request read, in words. */
import { t } from '@/locales'
import type { ContextUse } from '@/wire/types'

const PARTS = ['history', 'results', 'message', 'attachments', 'reasoning'] as const

/** Part by part, servers and sources one by one; nothing where the journal does not say it. */
export function contextParts({ request }: ContextUse): { name: string; tokens: number }[] {
  if (!request) return []
  const { tools, system, context, ...others } = request.parts
  const servers = Object.entries(tools).map(([server, tokens]) => ({ name: t('session.contextTools', { server }), tokens }))
  const given = Object.entries(context ?? {}).map(([source, tokens]) => ({ name: t('session.contextGiven', { source }), tokens }))
  const named = PARTS.map((part) => ({ name: t(`usage.part.${part}`), tokens: others[part] }))
  return [{ name: t('usage.part.system'), tokens: system }, ...servers, ...given, ...named].filter(({ tokens }) => tokens > 0)
}
