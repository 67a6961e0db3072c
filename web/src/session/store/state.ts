/** What the page knows of the open session. The parts of the store share it; components read it. */
import { computed, ref, shallowRef } from 'vue'
import { EMPTY } from '@/session/conversation/conversation'
import type { LinkState, SessionLink } from '@/wire/link'
import type { CallProgress, ElicitationItem, QueueCall, ResourceSource, SessionUsage, SystemReady } from '@/wire/types'
import type { Failure } from './commands'
import type { Unsent } from './outbox'

export interface Trouble {
  code: string
  text: string
}

/** What the server says of a budget while a turn runs: `budget_warning` or `answer_limited`, in words. */
export interface BudgetWord {
  code: string
  text: string
}

/** The socket of the open session. After each opening it is another one, so it is asked for at each use. */
export interface Connection {
  link: SessionLink | null
  /** What the server calls a session that it has not stored yet. */
  newId: string | null
}

/** `typist`: who is signed in, or nothing while nobody knows. */
export function createSessionState(typist: string) {
  return {
    /** Null until the first command of a new session is acknowledged: before that the server has not stored it. */
    id: ref<string | null>(null),
    isOpen: ref(false),
    ready: shallowRef<SystemReady | null>(null),
    conversation: shallowRef(EMPTY),
    queue: shallowRef<QueueCall[]>([]),
    /** What servers ask while their calls run. */
    asked: shallowRef<ElicitationItem[]>([]),
    usage: shallowRef<SessionUsage | null>(null),
    budgetWord: shallowRef<BudgetWord | null>(null),
    progress: shallowRef<Record<string, CallProgress>>({}),
    /** How far the copy of a fork's workspace is; null while nobody tells. */
    copiedBytes: ref<number | null>(null),
    /** Resources that were read and are others now, says their server; by `resourceKey`. */
    changedResources: shallowRef<ReadonlySet<string>>(new Set()),
    unsent: shallowRef<Unsent[]>([]),
    hasOlder: ref(false),
    linkState: ref<LinkState>('connecting'),
    lostSince: ref<number | null>(null),
    trouble: shallowRef<Trouble | null>(null),
    /** The last thing that the person asked for and that did not happen. */
    failure: shallowRef<Failure | null>(null),
    /** The turn that the person stopped and whose stop is not acknowledged. */
    stopping: ref<number | null>(null),
    /** The session that got its id while it was open. */
    bornId: ref<string | null>(null),
    /** Who types here: whose sign-in was lost is still the one, so that what they type keeps its place. */
    typist: ref(typist),
  }
}

export function resourceKey({ server, uri }: ResourceSource): string {
  return `${server} ${uri}`
}

export type SessionState = ReturnType<typeof createSessionState>

/** As before the first session was opened; who types stays. */
export function clearSessionState(state: SessionState): void {
  state.failure.value = null
  state.stopping.value = null
  state.bornId.value = null
  state.isOpen.value = false
  state.id.value = null
  state.ready.value = null
  state.conversation.value = EMPTY
  state.queue.value = []
  state.asked.value = []
  state.usage.value = null
  state.budgetWord.value = null
  state.changedResources.value = new Set()
  state.progress.value = {}
  state.copiedBytes.value = null
  state.unsent.value = []
  state.hasOlder.value = false
  state.linkState.value = 'connecting'
  state.lostSince.value = null
  state.trouble.value = null
}

/** The connection outlives an outage of the store, so its coming back is seen by what is saved. */
export function noteSaved({ trouble }: SessionState): void {
  if (trouble.value?.code === 'store_unavailable') trouble.value = null
}

/** What follows from the state. */
export function deriveFrom({ conversation, queue, ready, unsent }: SessionState) {
  const isRunning = computed(() => conversation.value.running !== null)
  const pending = computed(() => queue.value.filter((call) => call.status === 'pending'))
  const isEmpty = computed(() => conversation.value.entries.length === 0 && unsent.value.length === 0 && !isRunning.value)
  const model = computed(() => conversation.value.model ?? ready.value?.model ?? null)
  const provider = computed(() => conversation.value.provider ?? ready.value?.providerId ?? null)
  const effort = computed(() => (conversation.value.effort === undefined ? (ready.value?.effort ?? null) : conversation.value.effort))
  const assistant = computed(() => conversation.value.assistant ?? ready.value?.assistant ?? null)
  const compaction = computed(() => conversation.value.compaction ?? ready.value?.compaction ?? [])
  const isScripted = computed(() => provider.value === 'scripted')
  return { isRunning, pending, isEmpty, model, provider, effort, assistant, compaction, isScripted }
}
