/** What an API key may do: its scopes, and the sessions and servers that it is limited to. */
import { t } from '@/locales'
import type { Key, KeyScope } from './door'
import './apiKeys.en.json'

export const SCOPES: readonly KeyScope[] = ['read', 'message', 'decide', 'administer']

/** What a new key may do unless somebody chooses otherwise: work with sessions, and change nothing else. */
export const USUAL: readonly KeyScope[] = ['read', 'message', 'decide']

/** The sessions that a text names, by their ids or addresses. */
export function sessionsIn(text: string): string[] {
  return [...new Set(text.match(/ses_[0-9a-f]{32}/g))]
}

/** The servers that a text names, with spaces or commas between. */
export function serversIn(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))]
}

/** The limits of a key in words. */
export function limitsOf({ scopes, sessions, servers }: Pick<Key, 'scopes' | 'sessions' | 'servers'>): string {
  const isAll = SCOPES.every((scope) => scopes.includes(scope))
  const may = isAll ? t('apiKeys.everything') : scopes.map((scope) => t(`apiKeys.scope.${scope}`)).join(', ')
  const limits = [
    ...(sessions ? [t('apiKeys.onlySessions', { n: sessions.length })] : []),
    ...(servers ? [t('apiKeys.onlyServers', { servers: servers.join(', ') })] : []),
  ]
  return [may, ...limits].join(' · ')
}
