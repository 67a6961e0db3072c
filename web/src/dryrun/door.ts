/** The requests about dry runs. */
import { t } from '@/locales'
import { reasonOr, request } from '@/wire/request'
import type { WaitingPage } from '@/wire/restTypes'
import type { DryRun } from '@/wire/types'
import './texts.en.json'

export const door = {
  begin: (id: string, callId: string, digest?: string) =>
    request('post', '/api/sessions/{id}/dry-runs', { path: { id }, body: { callId, ...(digest !== undefined && { digest }) } }),
  drop: (id: string, callId: string) => request('delete', '/api/sessions/{id}/dry-runs/{callId}', { path: { id, callId } }),
  /** How far that of a call is; null where there is none. */
  async read(id: string, callId: string): Promise<DryRun | null> {
    const page = (await request('get', '/api/approvals', { query: { session: id } })) as WaitingPage
    const calls = page.items.flatMap(({ queue }) => queue.calls)
    return calls.find((call) => call.callId === callId)?.dryRun ?? null
  },
}

export function reasonOf(error: unknown): string {
  return reasonOr(error, t('dryRun.noAnswer'))
}
