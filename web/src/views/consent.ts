/** Which hosts a view may reach, by the word of the person: asked for each set of hosts of a server, and forgotten with the page. */
import { request } from '@/wire/request'
import type { Schemas } from 'sepal-client'

const WAYS = ['connect', 'load', 'frames', 'base'] as const

export interface Reach {
  way: (typeof WAYS)[number]
  host: string
}

const agreed = new Set<string>()

/** Every host, once for each thing that the view does with it. */
export function reachOf(view: Pick<ViewDocument, (typeof WAYS)[number]>): Reach[] {
  return WAYS.flatMap((way) => view[way].map((host) => ({ way, host })))
}

/** A view that reaches nothing needs no yes. */
export function hasAgreed(server: string, view: ViewDocument): boolean {
  return reachOf(view).length === 0 || agreed.has(keyOf(server, view))
}

export function noteAgreed(server: string, view: ViewDocument): void {
  agreed.add(keyOf(server, view))
}

function keyOf(server: string, view: ViewDocument): string {
  return JSON.stringify([server, ...reachOf(view).map(({ way, host }) => `${way} ${host}`).sort()])
}

// Requests the document of a view.

export type ViewDocument = Schemas['ViewDocument']

export const door = {
  readFor: (id: string, callId: string, uri: string) => request('post', '/api/sessions/{id}/views/resources', { path: { id }, body: { callId, uri } }),
  read: (id: string, server: string, uri: string) => request('post', '/api/sessions/{id}/views', { path: { id }, body: { server, uri } }),
}
