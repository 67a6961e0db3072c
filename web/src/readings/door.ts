/** The requests about reading sessions of others. They come with their parts, and not with every session. */
import type { Schemas } from 'sepal-client'
import { t } from '@/locales'
import { address } from '@/wire/base'
import { reasonOr, request } from '@/wire/request'
import '@/settings/texts.en.json'

export type Reading = Schemas['ReadingItem']

export const door = {
  list: () => request('get', '/api/readings', {}),
  begin: (id: string, reason: string) => request('post', '/api/sessions/{id}/readings', { path: { id }, body: { reason } }),
  see: (id: string) => request('post', '/api/readings/{id}/seen', { path: { id } }),
  end: (id: string) => request('delete', '/api/readings/{id}', { path: { id } }),
}

/** The page with the session that somebody may read. */
export function contentOf({ id }: Reading): string {
  return address(`api/readings/${id}/session?format=html&show=true`)
}

/** Why a request was refused, in words. */
export function reasonOf(error: unknown): string {
  return reasonOr(error, t('settings.noAnswer'))
}
