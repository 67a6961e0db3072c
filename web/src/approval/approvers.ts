/** Whose yes a call wants, and whether the reader's would count. The server decides; this only says so beforehand. */
import { computed, inject, provide, type ComputedRef, type InjectionKey } from 'vue'
import { useRuleSession } from '@/rules/ofSession'
import { usePerson } from '@/stores/person'
import type { QueueCall } from '@/wire/types'

const OWNER: InjectionKey<() => string | undefined> = Symbol('owner')
const SESSION: InjectionKey<() => string> = Symbol('session')
const ROLES = ['viewer', 'approver', 'member', 'admin', 'owner']

/** Whose session the calls below are of, where it is another's. */
export function provideOwner(owner: () => string | undefined): void {
  provide(OWNER, owner)
}

/** Whether the calls below are of another person's session. */
export function useIsOthers(): ComputedRef<boolean> {
  const owner = inject(OWNER, () => undefined)
  return computed(() => owner() !== undefined)
}

/** Which session the calls below are of, where no socket tells of it. */
export function provideCallSession(session: () => string): void {
  provide(SESSION, session)
}

/** The session of a call, and whether a socket tells what happens to it. */
export function useCallSession(): { session: ComputedRef<string | null>; isFollowed: boolean } {
  const session = inject(SESSION, null)
  const own = useRuleSession()
  return { session: session === null ? own : computed(session), isFollowed: session === null }
}

/** Whether the reader's yes counts for a call that waits. */
export function useMayApprove(call: () => QueueCall): ComputedRef<boolean> {
  const owner = inject(OWNER, () => undefined)
  return computed(() => {
    const { approvers = [], consents = [] } = call()
    if (approvers.length === 0) return true
    const me = usePerson().me?.user
    if (me === undefined) return true
    const isOwner = owner() === undefined
    return !consents.some(({ id }) => id === me.id) && approvers.some((who) => fits(who, isOwner, me.role))
  })
}

/** Only whoever may act reads a card. */
function fits(who: string, isOwner: boolean, role: string): boolean {
  if (who === 'owner') return isOwner
  if (who === 'somebody_else') return !isOwner
  if (who === 'two') return true
  const least = ROLES.indexOf(who.replace('role:', ''))
  return least >= 0 && ROLES.indexOf(role) >= least
}
