/** Requests about bundles, which come with what shows them. */
import { request, retried } from '@/wire/request'
import type { components } from '@/wire/rest.generated'
import type { ServerConfig } from '@/wire/restTypes'
import { send, type UploadWatch } from '@/wire/upload'

export type Bundle = components['schemas']['Bundle']
export type BundleValue = components['schemas']['BundleValue']
export interface Filled {
  name: string
  config: ServerConfig
  secrets: Record<string, string>
}

export interface Answers {
  values: Record<string, string>
  /** Without it, the hosts of the replaced bundle stay. */
  network?: string[]
}

export const bundles = {
  upload: (file: File, watch: UploadWatch) => retried('/api/mcp-bundles', () => send<Bundle>('api/mcp-bundles', file, watch)),
  entry: (sha256: string, body: Answers) => request('post', '/api/mcp-bundles/{sha256}/entry', { path: { sha256 }, body }) as Promise<Filled>,
  replace: (sha256: string, body: Answers & { server: string; seen: string }) => request('post', '/api/mcp-bundles/{sha256}/replace', { path: { sha256 }, body }),
}
