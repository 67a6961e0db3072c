/** The requests about resources and prompts of a session's servers. */
import { request } from '@/wire/request'
import type { components } from '@/wire/rest.generated'

export type ServerResources = components['schemas']['ServerResources']
export type ServerPrompts = components['schemas']['ServerPrompts']
export type PromptItem = components['schemas']['PromptItem']
export type Prompt = components['schemas']['Prompt']

export const door = {
  resources: (id: string) => request('get', '/api/sessions/{id}/resources', { path: { id } }),
  prompts: (id: string) => request('get', '/api/sessions/{id}/prompts', { path: { id } }),
  read: (id: string, server: string, uri: string) =>
    request('post', '/api/sessions/{id}/resources/read', { path: { id }, body: { server, uri } }),
  prompt: (id: string, server: string, name: string, values: Record<string, string>) =>
    request('post', '/api/sessions/{id}/prompts/get', { path: { id }, body: { server, name, arguments: values } }),
  complete: (id: string, body: components['schemas']['CompleteArgumentRequest']) =>
    request('post', '/api/sessions/{id}/completions', { path: { id }, body }),
}
