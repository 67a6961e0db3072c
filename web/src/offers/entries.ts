/** What can be chosen, as one list; addresses by patterns; and a prompt as the words of a message. Pure. */
import { t } from '@/locales'
import { request } from '@/wire/request'
import type { Schemas } from 'sepal-client'
import './texts.en.json'

/** An argument that the person fills in. */
export interface Blank {
  name: string
  label: string
  help: string
  required: boolean
}

export interface Entry {
  key: string
  server: string
  label: string
  /** An address, or what a prompt is for. */
  detail: string
  blanks: Blank[]
  /** Whether the server completes what is typed. */
  completes: boolean
  is: { uri: string } | { template: string } | { prompt: string }
}

const VARIABLE = /\{([+#./;?&]?)([^{}]+)\}/g

export function resourceEntries(servers: readonly ServerResources[]): Entry[] {
  return servers.flatMap(({ server, resources, templates, canComplete }) => [
    ...resources.map(({ uri, name, title }) => entry(server, { label: title ?? name, detail: uri, is: { uri } })),
    ...templates.map(({ uriTemplate, name, title }) => ({
      ...entry(server, { label: title ?? name, detail: uriTemplate, is: { template: uriTemplate } }),
      blanks: variables(uriTemplate).map((variable) => ({ name: variable, label: variable, help: '', required: true })),
      completes: canComplete,
    })),
  ])
}

export function promptEntries(servers: readonly ServerPrompts[]): Entry[] {
  return servers.flatMap(({ server, prompts, canComplete }) =>
    prompts.map((prompt) => ({
      ...entry(server, { label: prompt.title ?? prompt.name, detail: prompt.description ?? '', is: { prompt: prompt.name } }),
      blanks: blanksOf(prompt),
      completes: canComplete,
    })),
  )
}

function entry(server: string, what: Pick<Entry, 'label' | 'detail' | 'is'>): Entry {
  return { key: `${server} ${JSON.stringify(what.is)}`, server, blanks: [], completes: false, ...what }
}

function blanksOf({ arguments: all }: PromptItem): Blank[] {
  return all.map(({ name, title, description, required }) => ({ name, label: title ?? name, help: description ?? '', required }))
}

export function fitting(entries: readonly Entry[], filter: string): Entry[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  return entries.filter(({ server, label, detail }) => {
    const text = `${server} ${label} ${detail}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

/** The names in a pattern of RFC 6570, each once. */
export function variables(template: string): string[] {
  const names = [...template.matchAll(VARIABLE)].flatMap(([, , list = '']) => list.split(',').map((name) => name.replace(/(\*|:\d+)$/, '')))
  return [...new Set(names)]
}

/** The address that a pattern gives with these values (RFC 6570; each value is one text). */
export function expand(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(VARIABLE, (_, operator: string, list: string) => {
    const isOpen = operator === '+' || operator === '#'
    const isNamed = operator === ';' || operator === '?' || operator === '&'
    const parts = list.split(',').flatMap((item) => {
      const [name = '', most] = item.replace(/\*$/, '').split(':')
      const value = values[name] ?? ''
      if (value === '') return []
      const cut = most === undefined ? value : value.slice(0, Number(most))
      const text = isOpen ? encodeURI(cut) : encodeURIComponent(cut)
      return [isNamed ? `${name}=${text}` : text]
    })
    if (parts.length === 0) return ''
    const first = operator === '+' ? '' : operator
    const between = operator === '?' ? '&' : operator === '+' || operator === '#' || operator === '' ? ',' : operator
    return first + parts.join(between)
  })
}

/** A prompt as one message: who says what is told where more than the person speaks. */
export function wordsOf({ messages }: Prompt): string {
  const said = messages.flatMap(({ role, text }) => (text ? [{ role, text }] : []))
  if (said.every(({ role }) => role === 'user')) return said.map(({ text }) => text).join('\n\n')
  return said.map(({ role, text }) => `${t(role === 'user' ? 'offers.userSaid' : 'offers.assistantSaid')}\n${text}`).join('\n\n')
}

// The requests about resources and prompts of a session's servers.

type ServerResources = Schemas['ServerResources']
type ServerPrompts = Schemas['ServerPrompts']
type PromptItem = Schemas['PromptItem']
export type Prompt = Schemas['Prompt']

export const door = {
  resources: (id: string) => request('get', '/api/sessions/{id}/resources', { path: { id } }),
  prompts: (id: string) => request('get', '/api/sessions/{id}/prompts', { path: { id } }),
  read: (id: string, server: string, uri: string) =>
    request('post', '/api/sessions/{id}/resources/read', { path: { id }, body: { server, uri } }),
  prompt: (id: string, server: string, name: string, values: Record<string, string>) =>
    request('post', '/api/sessions/{id}/prompts/get', { path: { id }, body: { server, name, arguments: values } }),
  complete: (id: string, body: Schemas['CompleteArgumentRequest']) =>
    request('post', '/api/sessions/{id}/completions', { path: { id }, body }),
}
