/** Requests about bundles and packages, which are loaded with the components that show them. */
import { request, retried } from '@/wire/request'
import type { Schemas } from 'sepal-client'
import type { ServerConfig } from '@/wire/restTypes'
import { send, type UploadWatch } from '@/wire/upload'

export type Bundle = Schemas['Bundle']
export type BundleValue = Schemas['BundleValue']
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

// Packages

export const packages = {
  preview: (config: ServerConfig) => request('post', '/api/mcp/package', { body: { config } }),
  read: (name: string) => request('get', '/api/mcp/{name}/installation', { path: { name } }),
  retry: (name: string) => request('post', '/api/mcp/{name}/installation', { path: { name } }),
  cancel: (name: string) => request('delete', '/api/mcp/{name}/installation', { path: { name } }),
  check: (name: string) => request('post', '/api/mcp/{name}/installation/check', { path: { name } }),
  accept: (name: string, content: string) =>
    request('post', '/api/mcp/{name}/installation/accept', { path: { name }, body: { content } }),
}
