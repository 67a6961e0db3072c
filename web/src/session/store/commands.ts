/** What a person asks of the open session, and what is said when it did not happen. */
import type { Commands } from 'sepal-client'
import { shallowRef } from 'vue'
import { i18n } from '@/locales'
import { count } from '@/locales/format'
import { usePerson } from '@/stores/person'
import { useSessions } from '@/stores/sessions'
import { refused, type Ack, type CommandError, type SessionLink } from '@/wire/link'
import { RequestError } from '@/wire/request'
import type { DecideAll, Decision, JsonObject, Settlement } from '@/wire/types'
import { noteSaved, type Connection, type SessionState } from './state'

export function sessionCommands(state: SessionState, connection: Connection) {
  const { conversation, failure, id, stopping, typist } = state
  const person = usePerson()
  const sessions = useSessions()
  const decisions = useDecisions()

  async function command(name: keyof Commands, payload: JsonObject = {}): Promise<Ack> {
    const { link } = connection
    const ack: Ack = link ? await link.request(name, payload) : refused('offline')
    if (!ack.ok && ack.error.code === 'unauthorized') person.lost()
    return ack
  }

  /** Says what did not happen. What was left undone in another session is told with that session's name. */
  async function reporting(action: Action, answer: Promise<Ack>): Promise<Ack> {
    const [owner, title] = [typist.value, conversation.value.title ?? undefined]
    const { link } = connection
    failure.value = null
    const ack = await answer
    if (ack.ok) {
      if (link === connection.link) noteSaved(state)
    } else if (ack.error.code === 'left') {
      if (owner === typist.value) failure.value = { action: 'left', error: ack.error, title }
    } else if (link === connection.link && ack.error.code !== 'taken_back') {
      failure.value = { action, error: ack.error }
    }
    return ack
  }

  /** Deciding is idempotent, so a decision made while the connection is away still arrives. */
  async function decide(decision: Decision): Promise<Ack> {
    const { link } = connection
    return reporting('decide', link ? decisions.decide(link, decision) : Promise.resolve(refused('offline')))
  }

  async function decideAll(decision: DecideAll): Promise<Ack> {
    const { link } = connection
    return reporting('decide', link ? decisions.decideAll(link, decision) : Promise.resolve(refused('offline')))
  }

  /** A decision that was not sent yet is not sent any more. */
  function undecide(callId: string): void {
    if (connection.link) decisions.takeBack(connection.link, callId)
  }

  /** Names the turn, so that it can be kept until it is acknowledged and never stops a later one. */
  async function stop(): Promise<Ack> {
    const turn = conversation.value.running?.turn
    const { link } = connection
    if (!link || turn === undefined || stopping.value === turn) return { ok: true }
    stopping.value = turn
    const ack = await reporting('stop', link.keep('agent:cancel', { turn }))
    if (link === connection.link && stopping.value === turn) stopping.value = null
    return ack
  }

  async function rename(title: string): Promise<void> {
    const sessionId = id.value
    if (sessionId === null) return
    failure.value = null
    try {
      await sessions.rename(sessionId, title)
      if (sessionId === id.value) conversation.value = { ...conversation.value, title }
    } catch (error) {
      if (sessionId === id.value) noteFailure(state, 'rename', error)
    }
  }

  return {
    deciding: decisions.deciding,
    forgetDecisions: decisions.forget,
    command,
    decide,
    decideAll,
    undecide,
    stop,
    rename,
    settle: (settlement: Settlement) => reporting('settle', command('tool:outcome', { ...settlement })),
    stopCall: (callId: string) => reporting('stopCall', command('tool:cancel', { callId })),
    withdraw: (clientMessageId: string) => reporting('withdraw', command('message:withdraw', { clientMessageId })),
    retryTurn: () => reporting('retry', command('turn:retry')),
    chooseModel: ({ id: model, provider }: { id: string; provider: string }) => command('session:model', { model, provider }),
    /** A level or a number of tokens as text; null = as it is set for the model. The model stays. */
    chooseEffort: (effort: string | null) => command('session:model', { effort }),
    chooseWindow: (whole: boolean) => command('session:window', { whole }),
    /** None = what the settings say. */
    chooseCompaction: (strategies: string[]) => command('session:compaction', { strategies }),
    resetHistory: () => command('history:reset'),
    /** The answer names the new session. */
    fork: (how: JsonObject) => command('session:fork', how),
  }
}

/** Says that a request was refused or never arrived. */
export function noteFailure({ failure }: SessionState, action: Action, error: unknown): void {
  const isAnswer = error instanceof RequestError
  const code = isAnswer ? error.code : 'offline'
  failure.value = { action, error: { ...refused(code).error, message: isAnswer ? error.message : '' } }
}

// Decisions that the server has not answered: each call has at most one.

function useDecisions() {
  /** Calls whose decision the server has not answered. */
  const deciding = shallowRef<ReadonlySet<string>>(new Set())
  const latest = new Map<string, symbol>()

  async function track(callIds: string[], answer: Promise<Ack>): Promise<Ack> {
    const mark = Symbol()
    for (const callId of callIds) latest.set(callId, mark)
    show()
    const ack = await answer
    for (const callId of callIds) if (latest.get(callId) === mark) latest.delete(callId)
    show()
    return ack
  }

  function show(): void {
    deciding.value = new Set(latest.keys())
  }

  /** A decision that was not sent yet is not sent any more. */
  function takeBack(link: SessionLink, callId: string): void {
    link.revise('tool:approval', (payload) => (payload.callId === callId ? null : payload))
    link.revise('tool:approval_all', (payload) => withoutCall(payload, callId))
  }

  /** Replaces what was decided of this call and not sent yet. */
  function decide(link: SessionLink, decision: Decision): Promise<Ack> {
    takeBack(link, decision.callId)
    return track([decision.callId], link.keep('tool:approval', { ...decision, scope: 'once' }))
  }

  /** What was decided singly stays as it was decided, as on the server. */
  function decideAll(link: SessionLink, decision: DecideAll): Promise<Ack> {
    const callIds = decision.callIds.filter((callId) => !latest.has(callId))
    if (callIds.length === 0) return Promise.resolve({ ok: true })
    return track(callIds, link.keep('tool:approval_all', { ...decision, callIds }))
  }

  function forget(): void {
    latest.clear()
    show()
  }

  return { deciding, decide, decideAll, takeBack, forget }
}

function withoutCall(payload: JsonObject, callId: string): JsonObject | null {
  const callIds = (payload.callIds as string[]).filter((other) => other !== callId)
  return callIds.length === 0 ? null : { ...payload, callIds }
}

// The words for a failed command; every part of the page uses them.

type Action = 'decide' | 'settle' | 'stop' | 'stopCall' | 'withdraw' | 'retry' | 'rename' | 'older' | 'choose' | 'reset' | 'fork' | 'left'

export interface Failure {
  action: Action
  error: CommandError
  /** The title of the session that was left; only for `left`. */
  title?: string
}

/** The server's limit of a message or a reason, in bytes. */
export const MAX_TEXT_BYTES = 256 * 1024

export function failureWords({ action, error, title }: Failure): string {
  const { t, te } = i18n.global
  const decision = `decision.${error.code}`
  if (action === 'decide') return te(decision) ? t(decision) : t('decision.other', { reason: reasonOf(error) })
  return t(`told.${action}`, { reason: reasonOf(error), title: title ?? t('session.untitled') })
}

/** Ours for what the page answered itself, else the server's own words. */
export function reasonOf({ code, message }: CommandError): string {
  const { t, te } = i18n.global
  const key = `because.${code}`
  return te(key) ? t(key, { most: count(MAX_TEXT_BYTES) }) : message
}
