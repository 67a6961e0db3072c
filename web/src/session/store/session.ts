/** The open session: its state, with the socket, the events and the commands that change it. */
import { defineStore } from 'pinia'
import { watch } from 'vue'
import { usePerson } from '@/stores/person'
import { useSessions } from '@/stores/sessions'
import type { ResourceSource } from '@/wire/types'
import { sessionCommands } from './commands'
import { useConnection } from './connection'
import { useEventStream } from './eventStream'
import { useMessageDelivery } from './messageDelivery'
import { useOlderEvents } from './olderEvents'
import { createSessionState, deriveFrom, resourceKey, type Connection } from './state'

export { resourceKey }

export const useSession = defineStore('session', () => {
  const person = usePerson()
  const sessions = useSessions()
  const state = createSessionState(person.me?.user.id ?? '')
  const connection: Connection = { link: null, newId: null }
  const delivery = useMessageDelivery(state, connection)
  const stream = useEventStream(state, connection, delivery)
  const older = useOlderEvents(state, stream)
  const { forgetDecisions, ...commands } = sessionCommands(state, connection)
  const { open, close, tryNow } = useConnection(state, connection, {
    onReady: stream.onReady,
    onEvent: stream.onEvent,
    onOpening: delivery.recall,
    onOpened: () => delivery.deliverAll(state.unsent.value),
    onClosed() {
      forgetDecisions()
      delivery.forgetDeliveries()
      stream.clear()
      older.clear()
    },
  })

  watch(
    () => person.me?.user.id,
    (now) => {
      const before = state.typist.value
      if (now === undefined || now === before) return
      state.typist.value = now
      if (before === '') delivery.adopt(before, now)
      else close()
    },
    { flush: 'sync' },
  )
  // The list need not wait for the server's word on what is shown here.
  watch([state.id, state.linkState], () => sessions.follow(state.linkState.value === 'open' ? state.id.value : null), { flush: 'sync' })

  const { attach, send, unsend, reach, nowStored } = delivery

  function forgetChange(source: ResourceSource): void {
    state.changedResources.value = new Set([...state.changedResources.value].filter((key) => key !== resourceKey(source)))
  }

  return { ...state, ...deriveFrom(state), ...commands, open, close, tryNow, loadOlder: older.load, loadBackTo: older.loadBackTo, entryAt: stream.entryAt, attach, send, unsend, reach, nowStored, forgetChange }
})
