/** The requests about skills. */
import { t } from '@/locales'
import { address } from '@/wire/base'
import { csrf, reasonOr, request, RequestError, retried } from '@/wire/request'
import type { Schemas } from 'sepal-client'
import type { Problem } from '@/wire/restTypes'
import './texts.en.json'

export type Skill = Schemas['SkillItem']
export type SkillsPage = Schemas['SkillsPage']
export type Scope = Skill['scope']

/** What is wrong with an upload, or only odd. */
export interface SkillProblem {
  at: string
  message: string
  remedy: string
  isWarning?: boolean
}

export interface Written {
  name: string
  description: string
  body: string
}

/** The longest file that is shown, in characters. */
const MAX_SHOWN = 200_000

export const door = {
  list: () => request('get', '/api/skills'),
  read: (id: string) => request('get', '/api/skills/{id}', { path: { id } }),
  switch: (id: string, body: { enabled?: boolean; enabledForTenant?: boolean }) =>
    request('patch', '/api/skills/{id}', { path: { id }, body }),
  remove: (id: string) => request('delete', '/api/skills/{id}', { path: { id } }),
  add: (scope: Scope, what: File | Written) => send('POST', `api/skills?scope=${scope}`, what),
  replace: (id: string, what: File | Written) => send('PUT', `api/skills/${encodeURIComponent(id)}`, what),
  archive: (id: string) => address(`api/skills/${encodeURIComponent(id)}/archive`),
  file,
}

/** A file of a skill as text; null = it is none. */
async function file(id: string, path: string): Promise<string | null> {
  const to = `api/skills/${encodeURIComponent(id)}/files/${encodeURIComponent(path)}`
  const response = await fetchFrom(to, { method: 'GET' })
  const isText = response.headers.get('Content-Type')?.startsWith('text/') === true
  return isText ? (await response.text()).slice(0, MAX_SHOWN) : null
}

function send(method: string, to: string, what: File | Written): Promise<Skill> {
  const isFile = what instanceof File
  return retried(`/${to}`, async () => {
    const headers = {
      'Content-Type': isFile ? 'application/octet-stream' : 'application/json',
      'X-CSRF-Token': csrf(),
    }
    const response = await fetchFrom(to, { method, headers, body: isFile ? what : JSON.stringify(what) })
    return (await response.json()) as Skill
  })
}

async function fetchFrom(to: string, options: RequestInit): Promise<Response> {
  let response: Response
  try {
    response = await fetch(address(to), { ...options, credentials: 'same-origin' })
  } catch {
    throw new RequestError(0, {})
  }
  if (response.ok) return response
  const problem: unknown = await response.json().catch(() => ({}))
  throw new RequestError(response.status, problem as Problem)
}

/** What is wrong with what was sent, one by one; none = it is something else. */
export function problemsOf(error: unknown): SkillProblem[] {
  const problem: unknown = error instanceof RequestError ? error.problem : null
  if (typeof problem !== 'object' || problem === null || !('problems' in problem)) return []
  return Array.isArray(problem.problems) ? (problem.problems as SkillProblem[]) : []
}

export function reasonOf(error: unknown): string {
  return reasonOr(error, t('skills.noAnswer'))
}
