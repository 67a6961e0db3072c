/** The fields of a form that a server asks for; pure. */
import { ref } from 'vue'
import { t } from '@/locales'
import { reasonOf, request } from '@/wire/request'
import type { FormItem } from '@/wire/types'
import './texts.en.json'

type Json = Record<string, unknown>
/** What a field holds while it is filled in. */
export type Draft = Record<string, string | boolean | string[]>

export interface Field {
  name: string
  label: string
  description: string
  kind: 'text' | 'number' | 'boolean' | 'one' | 'several'
  /** What the browser checks of a text. */
  inputType: string
  isRequired: boolean
  /** It looks like something that a server must not ask for. */
  isSecret: boolean
  options: { value: string; label: string }[]
  schema: Json
}

const SECRET = /pass(word|phrase|wd)?|secret|token|api.?key|private.?key|credential|\bpin\b|\bcvv?\b|card.?number/i
const INPUT_TYPES: Record<string, string> = { 'email': 'email', 'uri': 'url', 'date': 'date' }

export function fieldsOf({ schema, order }: Pick<FormItem, 'schema' | 'order'>): Field[] {
  const properties = objectOf(schema.properties)
  const required = Array.isArray(schema.required) ? schema.required : []
  return order.filter((name) => name in properties).map((name) => fieldOf(name, objectOf(properties[name]), required.includes(name)))
}

function fieldOf(name: string, schema: Json, isRequired: boolean): Field {
  const label = typeof schema.title === 'string' && schema.title !== '' ? schema.title : name
  const description = typeof schema.description === 'string' ? schema.description : ''
  const options = optionsOf(schema.type === 'array' ? objectOf(schema.items) : schema)
  return {
    name,
    label,
    description,
    kind: kindOf(schema, options.length > 0),
    inputType: INPUT_TYPES[String(schema.format)] ?? 'text',
    isRequired,
    isSecret: [name, label, description].some((words) => SECRET.test(words)),
    options,
    schema,
  }
}

function kindOf(schema: Json, hasOptions: boolean): Field['kind'] {
  if (schema.type === 'array') return 'several'
  if (hasOptions) return 'one'
  if (schema.type === 'boolean') return 'boolean'
  return schema.type === 'number' || schema.type === 'integer' ? 'number' : 'text'
}

function optionsOf(schema: Json): Field['options'] {
  const titled = [schema.oneOf, schema.anyOf].find(Array.isArray) as Json[] | undefined
  if (titled) return titled.map((option) => ({ value: String(option.const), label: String(option.title ?? option.const) }))
  if (!Array.isArray(schema.enum)) return []
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : []
  return schema.enum.map((value, index) => ({ value: String(value), label: String(names[index] ?? value) }))
}

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}

/** What the server proposes. */
export function draftOf(fields: Field[]): Draft {
  return Object.fromEntries(fields.map(({ name, kind, schema }) => [name, beginning(kind, schema.default)]))
}

function beginning(kind: Field['kind'], value: unknown): Draft[string] {
  if (kind === 'several') return Array.isArray(value) ? value.map(String) : []
  if (kind === 'boolean') return value === true
  return value === undefined || value === null ? '' : String(value)
}

/** What is sent: a field that nobody filled in is left out. */
export function contentOf(fields: Field[], draft: Draft): Json {
  const content: Json = {}
  for (const { name, kind, isRequired } of fields) {
    const value = draft[name] ?? ''
    if (kind === 'boolean') content[name] = value === true
    else if (kind === 'several') {
      if (isRequired || (value as string[]).length > 0) content[name] = value
    } else if (value !== '') content[name] = kind === 'number' ? numberOf(String(value)) : value
  }
  return content
}

/** What is no number is sent as it is: the server of Sepal says what is wrong with it. */
function numberOf(text: string): number | string {
  const number = Number(text)
  return text.trim() === '' || Number.isNaN(number) ? text : number
}

/** The field that a refusal begins with, in backticks, and what it says of it; nothing where it names none of the form. */
export function problemAt(fields: readonly Field[], problem: string): { field: string; text: string } | null {
  const field = fields.find(({ name }) => problem.startsWith(`\`${name}\`: `))
  return field ? { field: field.name, text: problem.slice(field.name.length + 4) } : null
}

// Sends the answer of a person to a server, one at a time.

export function useAnswer(sessionId: () => string, elicitationId: () => string) {
  const isBusy = ref(false)
  /** Why the last one was refused. */
  const problem = ref('')

  /** Whether it arrived. What arrived goes from the page when the session says so. */
  async function answer(action: 'open' | 'accept' | 'decline', content?: Record<string, unknown>): Promise<boolean> {
    if (isBusy.value) return false
    isBusy.value = true
    problem.value = ''
    const body = { elicitationId: elicitationId(), action, ...(content && { content }) }
    try {
      await request('post', '/api/sessions/{id}/elicitations', { path: { id: sessionId() }, body })
      // The page stays until all is done there.
      if (action === 'open') isBusy.value = false
      return true
    } catch (error) {
      problem.value = reasonOf(error) || t('elicitation.noAnswer')
      isBusy.value = false
      return false
    }
  }

  return { isBusy, problem, answer }
}

/** An address in three pieces, so that its host stands out; pure. */
interface AddressParts {
  before: string
  host: string
  after: string
}

/** Of an address that is none, nothing stands out. */
export function addressParts(address: string): AddressParts {
  if (!URL.canParse(address)) return { before: address, host: '', after: '' }
  const { protocol, host } = new URL(address)
  const before = `${protocol}//`
  if (!address.startsWith(before + host)) return { before: address, host: '', after: '' }
  return { before, host, after: address.slice(before.length + host.length) }
}

/** Whether the name is written with letters that can look like others. */
export function hasForeignLetters(host: string): boolean {
  return host.split('.').some((label) => label.startsWith('xn--'))
}
