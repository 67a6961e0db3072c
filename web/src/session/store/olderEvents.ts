/** Reads the events before those that an opening brings, a page at a time. */
import { rest } from '@/wire/rest'
import type { StoredEvent } from '@/wire/types'
import { noteFailure } from './commands'
import type { SessionState } from './state'

const PAGE_OF_EVENTS = 300

interface Events {
  oldest(): StoredEvent | undefined
  prepend(older: readonly StoredEvent[]): void
}

export function useOlderEvents(state: SessionState, events: Events) {
  let page: Promise<void> | null = null

  async function load(): Promise<void> {
    const first = events.oldest()
    if (!state.hasOlder.value || !first || state.id.value === null) return
    const sessionId = state.id.value
    page ??= read(sessionId, first.seq)
      .catch((error: unknown) => {
        if (sessionId === state.id.value) noteFailure(state, 'older', error)
      })
      .finally(() => {
        page = null
      })
    return page
  }

  async function read(sessionId: string, before: number): Promise<void> {
    const found = await rest.eventsBefore(sessionId, before, PAGE_OF_EVENTS)
    if (sessionId !== state.id.value) return
    state.hasOlder.value = found.items.length > 0 && (found.items[0]?.seq ?? 1) > 1
    events.prepend(found.items)
  }

  function clear(): void {
    page = null
  }

  return { load, clear }
}
