/** Which session the calls on the screen are of: only where that is known can a rule be made from one. */
import { computed, inject, provide, type ComputedRef, type InjectionKey } from 'vue'
import type { QueueCall } from '@/wire/types'

const SESSION: InjectionKey<() => string | null> = Symbol('the session of the calls')

/** To be called by whatever shows the calls of a session; null while the server has not stored it. */
export function provideRuleSession(session: () => string | null): void {
  provide(SESSION, session)
}

export function useRuleSession(): ComputedRef<string | null> {
  const session = inject(SESSION, () => null, false)
  return computed(session)
}

/** A call that could not be valid has no facts, so nothing can be said of calls like it. */
export function mayStopAsking(call: QueueCall, session: string | null): session is string {
  return session !== null && call.digest !== undefined && call.status === 'pending' && call.mayDecide
}

/** Rules that somebody gave have such ids; those of tools and of the settings file cannot be taken back. */
export function isGivenRule(id: string | undefined): id is string {
  return id?.startsWith('rul_') === true
}
