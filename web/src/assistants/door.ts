/** The requests about assistants, and what a form makes of one. They come with their parts, and not with every session. */
import type { Schemas } from 'sepal-client'
import { t } from '@/locales'
import { address } from '@/wire/base'
import { reasonOr, request } from '@/wire/request'
import './texts.en.json'

export type Assistant = Schemas['AssistantItem']
export type AssistantDetails = Schemas['AssistantDetails']
export type Definition = Schemas['AssistantDefinitionItem']
export type AssistantBody = Schemas['AssistantBody']
export type Version = Schemas['AssistantVersionItem']
export type Access = Schemas['AccessItem']
export type Level = Access['level']
export type Scope = Assistant['scope']
export type Rule = Schemas['AssistantRuleBody']
/** One that the assistant has, or a new one with its content. */
export type AssistantFile = Schemas['AssistantFileBody']

/** The most assistants, or versions, that one answer lists. */
const MOST = 1000

export const door = {
  list: () => request('get', '/api/assistants', { query: { limit: MOST } }),
  read: (id: string) => request('get', '/api/assistants/{id}', { path: { id } }),
  add: (scope: Scope, body: AssistantBody) => request('post', '/api/assistants', { query: { scope }, body }),
  change: (id: string, body: AssistantBody) => request('put', '/api/assistants/{id}', { path: { id }, body }),
  remove: (id: string) => request('delete', '/api/assistants/{id}', { path: { id } }),
  versions: (id: string) => request('get', '/api/assistants/{id}/versions', { path: { id }, query: { limit: MOST } }),
  version: (id: string, version: number) => request('get', '/api/assistants/{id}/versions/{version}', { path: { id, version } }),
  restore: (id: string, version: number) => request('post', '/api/assistants/{id}/versions/{version}/restore', { path: { id, version } }),
  access: (id: string) => request('get', '/api/assistants/{id}/access', { path: { id } }),
  setAccess: (id: string, entries: { person?: string; name?: string; level: Level }[]) => request('put', '/api/assistants/{id}/access', { path: { id }, body: { entries } }),
  /** Takes the newest version into use. */
  update: (session: string) => request('post', '/api/sessions/{id}/assistant', { path: { id: session } }),
  exported: (id: string) => address(`api/assistants/${encodeURIComponent(id)}/export`),
}

/** Why a request was refused, in words. */
export function reasonOf(error: unknown): string {
  return reasonOr(error, t('assistants.noAnswer'))
}

const LEVELS: readonly Level[] = ['see', 'use', 'edit', 'own']

export function mayDo(assistant: Pick<Assistant, 'level'>, level: Level): boolean {
  return LEVELS.indexOf(assistant.level) >= LEVELS.indexOf(level)
}

// What a form changes. A choice that narrows nothing is none.

/** The tools of a server in a form. */
export interface ServerChoice {
  server: string
  isChosen: boolean
  /** Names, with commas between them; empty = all. */
  tools: string
}

export interface Draft {
  name: string
  description: string
  instructions: string
  /** `provider model`, the default first. */
  models: string[]
  effort: string
  narrowsTools: boolean
  servers: ServerChoice[]
  narrowsSkills: boolean
  skills: string[]
  rules: Rule[]
  /** As it is typed; empty = none. */
  limitUsd: string
  isHard: boolean
  /** The percentage at which people are warned; null = the usual one. */
  warnPercent: number | null
  openings: string[]
  files: (AssistantFile & { label: string })[]
}

export function draftOf(details: { name: string; description: string; definition: Definition } | null, servers: readonly string[]): Draft {
  const definition = details?.definition
  const tools = definition?.tools
  const named = [...new Set([...servers, ...(tools ?? []).map(({ server }) => server)])]
  return {
    name: details?.name ?? '',
    description: details?.description ?? '',
    instructions: definition?.instructions ?? '',
    models: (definition?.models ?? []).map(({ provider, model }) => `${provider} ${model}`),
    effort: definition?.effort ?? '',
    narrowsTools: tools !== undefined && tools !== null,
    servers: named.map((server) => {
      const chosen = tools?.find((one) => one.server === server)
      // Without a single tool it is not chosen, so that an empty field never means all.
      return { server, isChosen: chosen !== undefined && chosen.tools?.length !== 0, tools: chosen?.tools?.join(', ') ?? '' }
    }),
    narrowsSkills: definition?.skills !== undefined && definition.skills !== null,
    skills: [...(definition?.skills ?? [])],
    rules: (definition?.rules ?? []).map((rule) => ({ ...rule })),
    limitUsd: definition?.budget ? String(definition.budget.limitUsd) : '',
    isHard: definition?.budget?.isHard ?? true,
    warnPercent: definition?.budget?.warnPercent ?? null,
    openings: [...(definition?.openings ?? [])],
    files: (definition?.files ?? []).map(({ id, name }) => ({ id, label: name })),
  }
}

function toolsOf({ server, tools }: ServerChoice) {
  const names = tools.split(',').map((name) => name.trim()).filter((name) => name !== '')
  return names.length > 0 ? { server, tools: names } : { server }
}

export function bodyOf(draft: Draft): AssistantBody {
  const openings = draft.openings.filter((words) => words.trim() !== '')
  const limit = Number(draft.limitUsd)
  return {
    name: draft.name.trim(),
    description: draft.description.trim(),
    instructions: draft.instructions,
    models: draft.models.map((text) => {
      const [provider = '', ...model] = text.split(' ')
      return { provider, model: model.join(' ') }
    }),
    ...(draft.effort !== '' && { effort: draft.effort }),
    ...(draft.narrowsTools && { tools: draft.servers.filter(({ isChosen }) => isChosen).map(toolsOf) }),
    ...(draft.narrowsSkills && { skills: draft.skills }),
    rules: draft.rules,
    ...(draft.limitUsd.trim() !== '' && { budget: { limitUsd: limit, isHard: draft.isHard, ...(draft.warnPercent !== null && { warnPercent: draft.warnPercent }) } }),
    openings,
    files: draft.files.map(({ label, ...file }) => (file.data === undefined ? file : { ...file, name: label })),
  }
}

/** The content of a file as base64. */
export function base64Of(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(reader.error ?? new Error('the file cannot be read'))
    reader.readAsDataURL(file)
  })
}
