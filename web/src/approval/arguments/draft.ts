/** The edited arguments as a person types them; what was not touched stays exactly as it was. */
import type { JsonObject } from '@/wire/types'
import type { Field, Problem } from './schema'

export type Draft = ReadonlyMap<string, string>

/** What was typed into an edit: by field, or as JSON where there is no form. */
export interface EditDraft {
  fields: ReadonlyMap<string, string>
  json: string | null
}

/** What a field shows: the draft, else the argument as text. */
export function fieldText(field: Field, args: JsonObject, draft: Draft): string {
  const typed = draft.get(field.key)
  if (typed !== undefined) return typed
  const value = Object.hasOwn(args, field.key) ? args[field.key] : undefined
  return value === undefined ? '' : String(value)
}

/** Arguments in their old order; an emptied optional number or choice is left out. */
export function draftedArguments(fields: Field[], args: JsonObject, draft: Draft): { args: JsonObject; problem: Problem | null } {
  const result = new Map<string, unknown>(Object.entries(args))
  let problem: Problem | null = null
  for (const field of fields) {
    const typed = draft.get(field.key)
    if (typed === undefined) continue
    const value = valueOf(field, typed, Object.hasOwn(args, field.key))
    if (value === undefined) result.delete(field.key)
    else result.set(field.key, value)
    if (Number.isNaN(value)) problem ??= { field: field.key, code: field.kind === 'integer' ? 'integer' : 'number', expected: '' }
  }
  return { args: Object.fromEntries(result), problem }
}

function valueOf(field: Field, typed: string, wasGiven: boolean): unknown {
  switch (field.kind) {
    case 'number':
    case 'integer':
      if (typed.trim() === '') return undefined
      return /^\s*-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*$/.test(typed) ? Number(typed) : Number.NaN
    case 'boolean':
      return typed === '' ? undefined : typed === 'true'
    case 'choice':
      return typed === '' ? undefined : typed
    default:
      return typed === '' && !wasGiven && !field.isRequired ? undefined : typed
  }
}
