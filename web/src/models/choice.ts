/** The list of the model picker, as pure functions. */
import type { Model, Models } from '@/wire/restTypes'

/** One model with what stands beside it. */
export interface Choice {
  key: string
  model: Model
  isStarred: boolean
  /** The person's own, and its provider does not list it now. */
  isGone: boolean
}

/** Models under one heading. */
export interface Group {
  /** Null for the starred ones, which are of any provider. */
  provider: string | null
  /** Why its models may be missing. */
  problem: string | null
  choices: Choice[]
}

/** A retirement that is further away is no reason to choose another model today. */
const SOON_MS = 60 * 24 * 3_600_000

/** The same model may be offered by two providers. */
export function keyOf(model: Pick<Model, 'id' | 'provider'>): string {
  return `${model.provider}/${model.id}`
}

/** Starred models first, also those that are not listed now; then each provider, also one that answers nothing. */
export function groups(listed: Pick<Models, 'models' | 'problems'>, filter: string, starred: ReadonlySet<string>): Group[] {
  const known = new Map(listed.models.map((model) => [keyOf(model), choiceOf(model, starred)]))
  const gone = [...starred].filter((key) => !known.has(key)).map(goneChoice)
  const fitting = [...known.values(), ...gone].filter(({ model }) => fits(model, filter))
  const providers = new Set([...listed.models.map(({ provider }) => provider), ...listed.problems.map(({ provider }) => provider)])
  const ofProviders = [...providers].map((provider) => ({
    provider,
    problem: listed.problems.find((trouble) => trouble.provider === provider)?.problem ?? null,
    choices: fitting.filter((choice) => !choice.isStarred && choice.model.provider === provider),
  }))
  const top: Group = { provider: null, problem: null, choices: fitting.filter((choice) => choice.isStarred) }
  const isShown = ({ provider, problem, choices }: Group) => choices.length > 0 || (problem !== null && `${provider}`.toLowerCase().includes(filter.trim().toLowerCase()))
  return [top, ...ofProviders].filter(isShown)
}

function choiceOf(model: Model, starred: ReadonlySet<string>): Choice {
  const key = keyOf(model)
  return { key, model, isStarred: starred.has(key), isGone: false }
}

function goneChoice(key: string): Choice {
  const at = key.indexOf('/')
  const [provider, id] = [key.slice(0, at), key.slice(at + 1)]
  return { key, model: { id, name: id, provider, prices: [], abilities: [] }, isStarred: true, isGone: true }
}

/** Every word of the filter has to stand somewhere in id, name or provider. */
function fits(model: Model, filter: string): boolean {
  const text = `${model.id} ${model.name} ${model.provider}`.toLowerCase()
  return filter.toLowerCase().split(/\s+/).filter(Boolean).every((word) => text.includes(word))
}

/** What most requests cost; null = unknown, which is not free. */
export function price(model: Model): { input: number; output: number } | null {
  const first = [...model.prices].sort((a, b) => a.above - b.above)[0]
  return first ? { input: first.input, output: first.output } : null
}

/** Whether it is known that a model cannot do this. */
export function lacks(model: Model, ability: 'tools' | 'images' | 'reasoning'): boolean {
  return !model.abilitiesAssumed && model.abilities.length > 0 && !model.abilities.includes(ability)
}

/** When it will be, or was, taken away; null = not soon, or nobody knows. */
export function retirement(model: Model, now: number): { at: Date; isPast: boolean } | null {
  const time = Date.parse(model.retiresAt ?? '')
  if (Number.isNaN(time) || time - now > SOON_MS) return null
  return { at: new Date(time), isPast: time < now }
}
