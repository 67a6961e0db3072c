/** The request for the document of a view. */
import { request } from '@/wire/request'
import type { components } from '@/wire/rest.generated'

export type ViewDocument = components['schemas']['ViewDocument']

export const door = {
  readFor: (id: string, callId: string, uri: string) => request('post', '/api/sessions/{id}/views/resources', { path: { id }, body: { callId, uri } }),
  read: (id: string, server: string, uri: string) => request('post', '/api/sessions/{id}/views', { path: { id }, body: { server, uri } }),
}
