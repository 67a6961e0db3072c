/**
 * What the editor needs of JSON Schema: which schemas fit into a form, and the first thing that is wrong.
 * The server checks again; patterns are left to it, as a hostile one could stop the page.
 */
import { asObject } from '@/wire/json'
import type { JsonObject } from '@/wire/types'

export type FieldKind = 'line' | 'long' | 'number' | 'integer' | 'boolean' | 'choice'

export interface Field {
  key: string
  kind: FieldKind
  isRequired: boolean
  title?: string
  description?: string
  choices: string[]
}

export type ProblemCode = 'json' | 'object' | 'required' | 'type' | 'number' | 'integer' | 'choice' | 'unknown' | 'tooSmall' | 'tooLarge' | 'tooShort' | 'tooLong' | 'exact'

export interface Problem {
  /** Path of the value, empty for the whole. */
  field: string
  code: ProblemCode
  /** What would be right: a type, a limit, the choices. */
  expected: string
}

const LONG_CHARACTERS = 80
const LONG_KEYS = new Set(['content', 'command', 'text', 'body', 'script', 'code', 'old_string', 'new_string'])
const MAX_DEPTH = 12
const PRIMITIVES = new Set(['string', 'number', 'integer', 'boolean'])
const COMBINING = ['anyOf', 'oneOf', 'allOf', 'not', '$ref', 'if', 'patternProperties', 'dependentSchemas']

/** Null when the schema or the arguments do not fit into a flat form. */
export function fieldsOf(schema: JsonObject, args: JsonObject): Field[] | null {
  const properties = asObject(schema.properties)
  if (properties === null || COMBINING.some((key) => key in schema)) return null
  if (Object.keys(args).some((key) => !Object.hasOwn(properties, key))) return null
  const required = Array.isArray(schema.required) ? schema.required : []
  const fields: Field[] = []
  for (const [key, value] of Object.entries(properties)) {
    const property = asObject(value)
    const kind = property === null ? null : kindOf(key, property, args)
    if (property === null || kind === null) return null
    fields.push({
      key,
      kind,
      isRequired: required.includes(key),
      title: textOf(property.title),
      description: textOf(property.description),
      choices: Array.isArray(property.enum) ? property.enum.map(String) : [],
    })
  }
  return fields
}

function kindOf(key: string, property: JsonObject, args: JsonObject): FieldKind | null {
  const type = property.type
  if (typeof type !== 'string' || !PRIMITIVES.has(type) || COMBINING.some((name) => name in property)) return null
  const value = Object.hasOwn(args, key) ? args[key] : undefined
  if (value !== undefined && !isOfType(value, type)) return null
  if (Array.isArray(property.enum)) return type === 'string' && property.enum.every((choice) => typeof choice === 'string') ? 'choice' : null
  if (type !== 'string') return type as FieldKind
  return isLong(key, value) ? 'long' : 'line'
}

/** A field of one line would drop line breaks. */
function isLong(key: string, value: unknown): boolean {
  return LONG_KEYS.has(key) || (typeof value === 'string' && (value.length > LONG_CHARACTERS || /[\r\n]/.test(value)))
}

/** The first thing that is wrong with the arguments, in the order of the schema. */
export function problemOf(schema: JsonObject, value: unknown): Problem | null {
  if (asObject(value) === null) return { field: '', code: 'object', expected: '' }
  return check(schema, value, '', 0)
}

function check(schema: JsonObject, value: unknown, field: string, depth: number): Problem | null {
  if (depth > MAX_DEPTH) return null
  const types = Array.isArray(schema.type) ? schema.type : schema.type === undefined ? [] : [schema.type]
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    const code = types.includes('integer') ? 'integer' : types.includes('number') ? 'number' : 'type'
    return { field, code, expected: types.join(' / ') }
  }
  if (Array.isArray(schema.enum) && !schema.enum.some((choice) => JSON.stringify(choice) === JSON.stringify(value))) {
    return { field, code: 'choice', expected: schema.enum.map(String).join(', ') }
  }
  return checkLimits(schema, value, field) ?? checkItems(schema, value, field, depth) ?? checkProperties(schema, value, field, depth)
}

function checkLimits(schema: JsonObject, value: unknown, field: string): Problem | null {
  const size = typeof value === 'number' ? value : typeof value === 'string' ? [...value].length : null
  if (size === null) return null
  const [least, most] = typeof value === 'number' ? [schema.minimum, schema.maximum] : [schema.minLength, schema.maxLength]
  const isNumber = typeof value === 'number'
  if (typeof least === 'number' && size < least) return { field, code: isNumber ? 'tooSmall' : 'tooShort', expected: String(least) }
  if (typeof most === 'number' && size > most) return { field, code: isNumber ? 'tooLarge' : 'tooLong', expected: String(most) }
  return null
}

function checkItems(schema: JsonObject, value: unknown, field: string, depth: number): Problem | null {
  const items = asObject(schema.items)
  if (!Array.isArray(value) || items === null) return null
  for (const [index, item] of value.entries()) {
    const problem = check(items, item, `${field}[${index}]`, depth + 1)
    if (problem !== null) return problem
  }
  return null
}

function checkProperties(schema: JsonObject, value: unknown, field: string, depth: number): Problem | null {
  const object = asObject(value)
  if (object === null) return null
  const properties = asObject(schema.properties) ?? {}
  const path = (key: string) => (field === '' ? key : `${field}.${key}`)
  for (const key of Array.isArray(schema.required) ? schema.required.map(String) : []) {
    if (!Object.hasOwn(object, key)) return { field: path(key), code: 'required', expected: '' }
  }
  for (const [key, child] of Object.entries(object)) {
    const property = Object.hasOwn(properties, key) ? asObject(properties[key]) : null
    if (property === null && schema.additionalProperties === false && !Object.hasOwn(properties, key)) {
      return { field: path(key), code: 'unknown', expected: Object.keys(properties).join(', ') }
    }
    const problem = property === null ? null : check(property, child, path(key), depth + 1)
    if (problem !== null) return problem
  }
  return null
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'string': return typeof value === 'string'
    case 'number': return typeof value === 'number'
    case 'integer': return Number.isInteger(value)
    case 'boolean': return typeof value === 'boolean'
    case 'array': return Array.isArray(value)
    case 'object': return asObject(value) !== null
    case 'null': return value === null
    default: return true
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

// The draft of edited arguments. Values that the person did not touch stay exactly as they were.

type Draft = ReadonlyMap<string, string>

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
