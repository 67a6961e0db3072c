/** What events say of the session itself: its title, its model, and how much of the past the model reads. */
import { isObject, numberOf, stringOf } from '@/wire/json'
import type { JsonObject } from '@/wire/types'
import type { Left, Note } from './conversation'
import type { Draft, Told } from './draft'
import { settled } from './foldCalls'

export function changed(draft: Draft, { place, data }: Told): void {
  if (typeof data.title === 'string') draft.state.title = data.title
  if (typeof data.model === 'string') {
    draft.state.model = data.model
    draft.state.provider = stringOf(data.provider) ?? draft.state.provider
    if (data.effort !== undefined) draft.state.effort = stringOf(data.effort) ?? null
    draft.note(place, { what: 'model', model: data.model, effort: draft.state.effort ?? null })
  }
  if (typeof data.wholeWindow === 'boolean') draft.note(place, { what: 'window', whole: data.wholeWindow })
  if (isObject(data.placed)) draft.note(place, { what: 'placed', name: stringOf(data.placed.name) ?? '', path: stringOf(data.placed.path) ?? '' })
  if (isObject(data.ruleGiven)) draft.note(place, { what: 'ruleGiven', sentence: stringOf(data.ruleGiven.sentence) ?? '', ...ruleOf(data.ruleGiven), ...networkOf(data.ruleGiven) })
  if (isObject(data.ruleTakenBack)) draft.note(place, { what: 'ruleTakenBack', ...ruleOf(data.ruleTakenBack) })
  if (isObject(data.hostRefused)) draft.note(place, refusalOf(data.hostRefused))
  if (Array.isArray(data.compaction)) {
    draft.state.compaction = data.compaction.filter((strategy) => typeof strategy === 'string')
    draft.note(place, { what: 'compaction', strategies: draft.state.compaction })
  }
  if (typeof data.withdrawn === 'string') withdraw(draft, data.withdrawn)
  if (isObject(data.settled)) settled(draft, place, data.settled)
}

export function compacted(draft: Draft, { place, data }: Told): void {
  const tokens = (value: unknown) => (isObject(value) ? numberOf(value.tokens) : 0)
  const strategy = stringOf(data.strategy) ?? ''
  draft.note(place, { what: 'compacted', strategy, before: tokens(data.before), after: tokens(data.after), left: leftOf(data.left), summary: stringOf(data.summary) ?? null, summarisedBy: modelOf(data.summarisedBy), cost: costOf(data.summarisedBy) })
}

export function contextReset(draft: Draft, { place }: Told): void {
  draft.note(place, { what: 'reset' })
}

/** What stands above happened in that session. */
export function forked(draft: Draft, { place, data }: Told): void {
  draft.state.running = null
  const is = typeof data.hasFiles !== 'boolean' ? 'apart' : data.hasFiles ? 'copying' : 'none'
  draft.note(place, { what: 'forked', sessionId: stringOf(data.sessionId) ?? '', fromSeq: numberOf(data.fromSeq), workspace: { is } })
}

/** The workspace of the fork has what it begins with; the line of the fork says what. */
export function workspaceCopied(draft: Draft, { place, data }: Told): void {
  const why = stringOf(data.empty)
  const bytes = typeof data.copiedBytes === 'number' ? data.copiedBytes : null
  draft.settleFork(why ? { is: 'empty', why } : { is: 'copied', bytes, at: place.at })
}

function ruleOf({ id, by }: JsonObject): { id: string; by: string } {
  return { id: stringOf(id) ?? '', by: isObject(by) ? (stringOf(by.name) ?? '') : '' }
}

function networkOf({ network }: JsonObject): { network?: string[] } {
  return Array.isArray(network) ? { network: network.filter((host) => typeof host === 'string') } : {}
}

function refusalOf({ host, port, entry, onRequest, reason }: JsonObject): Note {
  return { what: 'hostRefused', host: stringOf(host) ?? '', port: numberOf(port), entry: stringOf(entry) ?? null, onRequest: onRequest === true, reason: stringOf(reason) ?? '' }
}

function leftOf(value: unknown): Left | null {
  if (!isObject(value)) return null
  const seq = (of: unknown) => (typeof of === 'number' ? of : null)
  return { messages: numberOf(value.messages), fromSeq: seq(value.fromSeq), toSeq: seq(value.toSeq) }
}

function modelOf(value: unknown): string | null {
  return isObject(value) ? (stringOf(value.model) ?? null) : null
}

function costOf(value: unknown): number | null {
  return isObject(value) && typeof value.cost === 'number' ? value.cost : null
}

function withdraw(draft: Draft, clientMessageId: string): void {
  draft.state.waiting = draft.state.waiting.filter((message) => message.clientMessageId !== clientMessageId)
  draft.remove((entry) => entry.kind === 'user' && entry.clientMessageId === clientMessageId)
}
