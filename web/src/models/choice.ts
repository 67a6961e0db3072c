/** The list of the model picker, as a pure function. */
import type { Model } from '@/wire/restTypes'

/** One model with what stands beside it. */
export interface Choice {
  key: string
  model: Model
  isStarred: boolean
}

/** The same model may be offered by two providers. */
export function keyOf(model: Pick<Model, 'id' | 'provider'>): string {
  return `${model.provider}/${model.id}`
}

/** Every word of the filter has to stand somewhere in id, name or provider; starred ones first. */
export function choices(models: Model[], filter: string, starred: ReadonlySet<string>): Choice[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  const fits = (model: Model) => {
    const text = `${model.id} ${model.name} ${model.provider}`.toLowerCase()
    return words.every((word) => text.includes(word))
  }
  const all = models.filter(fits).map((model) => ({ key: keyOf(model), model, isStarred: starred.has(keyOf(model)) }))
  return [...all.filter((choice) => choice.isStarred), ...all.filter((choice) => !choice.isStarred)]
}

/** What most requests cost; null = unknown, which is not free. */
export function price(model: Model): { input: number; output: number } | null {
  const first = [...model.prices].sort((a, b) => a.above - b.above)[0]
  return first ? { input: first.input, output: first.output } : null
}

/** A list that names no abilities says nothing about them. */
export function cannotUseTools(model: Model): boolean {
  return model.abilities.length > 0 && !model.abilities.includes('tools')
}
