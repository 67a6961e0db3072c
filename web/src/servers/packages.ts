/** Requests about packages, which come with what shows them. */
import { request } from '@/wire/request'
import type { ServerConfig } from '@/wire/restTypes'

export const packages = {
  preview: (config: ServerConfig) => request('post', '/api/mcp/package', { body: { config } }),
  read: (name: string) => request('get', '/api/mcp/{name}/installation', { path: { name } }),
  retry: (name: string) => request('post', '/api/mcp/{name}/installation', { path: { name } }),
  cancel: (name: string) => request('delete', '/api/mcp/{name}/installation', { path: { name } }),
  check: (name: string) => request('post', '/api/mcp/{name}/installation/check', { path: { name } }),
  accept: (name: string, content: string) =>
    request('post', '/api/mcp/{name}/installation/accept', { path: { name }, body: { content } }),
}
