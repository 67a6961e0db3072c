/** A rule as its form holds it, and as it is sent; pure. */
import type { NewRule, RuleConditions, RuleEffect } from '@/rules/types'
import { asObject, hasUnsafeInteger } from '@/wire/json'
import type { JsonObject } from '@/wire/types'

/** What arguments are held against: nothing, exactly these, or a JSON Schema. */
export type Fits = 'any' | 'exactly' | 'schema'

export interface ConditionDraft {
  /** `anyWords`: whether further words may also write files or run programs. */
  commands: { text: string; more: boolean; anyWords?: boolean }[]
  paths: { argument: string; below: string }[]
  hosts: { argument: string; host: string }[]
  fits: Fits
  json: string
  /** US dollars that the session has to have cost more than, as typed; empty = whatever it has cost. */
  costAbove: string
}

export interface RuleDraft {
  effect: RuleEffect
  /** The id of the group for whose members it is; empty = for everybody. */
  group: string
  server: string
  tool: string
  when: ConditionDraft
  except: ConditionDraft[]
  isBinding: boolean
  /** Whether a model may approve the calls that it asks for. */
  isReviewed: boolean
  /** Who must say yes where it asks. */
  approvers: string
  /** Whether each yes needs a passkey or a password, given for it. */
  isFresh: boolean
  hours: number | null
  name: string
  /** Arguments of calls that show what it is about and what not, as JSON; empty = the server finds some. */
  matching: string
  other: string
}

/** `where`: the field, as `when.json`, `except.0.commands.1`, `reviewed`, `matching`. */
export interface DraftProblem {
  where: string
  code: 'command' | 'json' | 'object' | 'inexact' | 'quote' | 'argument' | 'host' | 'empty' | 'examples' | 'cost' | 'reviewed'
}

export function emptyConditions(): ConditionDraft {
  return { commands: [], paths: [], hosts: [], fits: 'any', json: '', costAbove: '' }
}

export function emptyDraft(): RuleDraft {
  return { effect: 'ask', group: '', server: '', tool: '', when: emptyConditions(), except: [], isBinding: false, isReviewed: false, approvers: 'owner', isFresh: false, hours: null, name: '', matching: '', other: '' }
}

export interface ReadDraft {
  /** Null while there are problems. */
  rule: NewRule | null
  problems: DraftProblem[]
}

/** Only what the effect has is sent: exceptions of what refuses or asks, and a binding question. */
export function readDraft(draft: RuleDraft): ReadDraft {
  const problems: DraftProblem[] = []
  const report = (where: string, code: DraftProblem['code']) => void problems.push({ where, code })
  const conditions = draft.effect === 'allow' ? draft.when : withoutAnyWords(draft.when)
  const when = readConditions(conditions, (where, code) => report(`when.${where}`, code))
  const except = (draft.effect === 'allow' ? [] : draft.except).map((one, at) => {
    const conditions = readConditions(one, (where, code) => report(`except.${at}.${where}`, code))
    if (Object.keys(conditions).length === 0 && !problems.some(({ where }) => where.startsWith(`except.${at}.`))) report(`except.${at}`, 'empty')
    return conditions
  })
  const [server, tool, name] = [draft.server.trim() || '*', draft.tool.trim() || '*', draft.name.trim()]
  // A model stands in for the owner's plain yes alone.
  if (draft.effect === 'ask' && draft.isReviewed && (draft.approvers !== 'owner' || draft.isFresh)) report('reviewed', 'reviewed')
  const examples = readExamples(draft, report)
  const rule: NewRule = {
    effect: draft.effect,
    ...(draft.group === '' ? { scope: 'tenant' } : { scope: 'group', group: draft.group }),
    server,
    tool,
    when,
    ...(except.length > 0 && { except }),
    ...(draft.effect === 'ask' && draft.isBinding && { binding: true }),
    ...(draft.effect === 'ask' && draft.isReviewed && { reviewed: true }),
    ...(draft.effect === 'ask' && draft.approvers !== 'owner' && { approvers: draft.approvers }),
    ...(draft.effect === 'ask' && draft.isFresh && { freshGesture: true }),
    ...(draft.hours !== null && { expiresInHours: draft.hours }),
    ...(name !== '' && { name }),
    ...(examples !== null && {
      examples: { matching: { server, tool, arguments: examples.matching }, other: { server, tool, arguments: examples.other } },
    }),
  }
  return { rule: problems.length === 0 ? rule : null, problems }
}

/** What asks or refuses is about any words already. */
function withoutAnyWords(draft: ConditionDraft): ConditionDraft {
  return { ...draft, commands: draft.commands.map(({ text, more }) => ({ text, more })) }
}

type Report = (where: string, code: DraftProblem['code']) => void

/** A line that holds nothing is not finished: left out, the rule would be wider than it looks. */
export function readConditions(draft: ConditionDraft, report: Report): RuleConditions {
  const commands = draft.commands.flatMap(({ text, more, anyWords }, at) => {
    const words = commandWords(text)
    if (words === null || words.length === 0) {
      report(`commands.${at}`, words === null ? 'quote' : 'command')
      return []
    }
    return [{ words, more, ...(more && anyWords === true && { anyWords }) }]
  })
  const paths = draft.paths.flatMap(({ argument, below }, at) => {
    if (argument.trim() === '') report(`paths.${at}`, 'argument')
    return argument.trim() === '' ? [] : [{ argument: argument.trim(), below: below.trim() }]
  })
  const hosts = draft.hosts.flatMap(({ argument, host }, at) => {
    if (argument.trim() === '' || host.trim() === '') report(`hosts.${at}`, argument.trim() === '' ? 'argument' : 'host')
    return argument.trim() === '' || host.trim() === '' ? [] : [{ argument: argument.trim(), host: host.trim() }]
  })
  const costAboveUsd = readCost(draft.costAbove, report)
  const json = draft.fits === 'any' ? null : readObject(draft.json, 'json', report)
  return {
    ...(commands.length > 0 && { command: commands }),
    ...(paths.length > 0 && { paths }),
    ...(hosts.length > 0 && { hosts }),
    ...(costAboveUsd !== null && { costAboveUsd }),
    ...(json !== null && (draft.fits === 'exactly' ? { exactly: json } : { schema: json })),
  }
}

/** The server counts in millionths of a dollar, and to a million. */
const MOST_USD = 1_000_000
const USD = /^\d{1,7}(\.\d{1,6})?$/

/** What would be kept is what was typed: nothing is rounded, and a comma is not guessed at. */
function readCost(text: string, report: Report): number | null {
  if (text.trim() === '') return null
  const usd = USD.test(text.trim()) ? Number(text) : Infinity
  if (usd <= MOST_USD) return usd
  report('costAbove', 'cost')
  return null
}

/** Both or none. */
function readExamples({ matching, other }: RuleDraft, report: Report): { matching: JsonObject; other: JsonObject } | null {
  if (matching.trim() === '' && other.trim() === '') return null
  if (matching.trim() === '' || other.trim() === '') {
    report(matching.trim() === '' ? 'matching' : 'other', 'examples')
    return null
  }
  const [one, another] = [readObject(matching, 'matching', report), readObject(other, 'other', report)]
  return one !== null && another !== null ? { matching: one, other: another } : null
}

function readObject(text: string, where: string, report: Report): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    const object = asObject(value)
    if (object === null) report(where, 'object')
    // What would be sent is another number than what was typed.
    else if (hasUnsafeInteger(object)) report(where, 'inexact')
    return object
  } catch {
    report(where, 'json')
    return null
  }
}

// The words of a command: spaces part them, quotes keep them together. Nothing is expanded.

/** Null while a quote is open. */
export function commandWords(text: string): string[] | null {
  const words: string[] = []
  let word: string | null = null
  let quote = ''
  for (const sign of text) {
    if (quote !== '') {
      if (sign === quote) quote = ''
      else word = (word ?? '') + sign
    } else if (sign === "'" || sign === '"') {
      quote = sign
      word ??= ''
    } else if (/\s/.test(sign)) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? '') + sign
  }
  if (quote !== '') return null
  return word === null ? words : [...words, word]
}
