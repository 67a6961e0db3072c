/** Reads the events before those that an opening brings, a page at a time. */
import { rest } from '@/wire/rest'
import type { Seq, StoredEvent } from '@/wire/types'
import { noteFailure } from './commands'
import type { SessionState } from './state'

const PAGE_OF_EVENTS = 300
/** Of a page that is read on the way to an older one. */
const MOST_EVENTS = 500

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

  /** Reads as far back as that event, and folds once. */
  async function loadBackTo(seq: Seq): Promise<void> {
    await page
    const first = events.oldest()
    const sessionId = state.id.value
    if (!state.hasOlder.value || !first || first.seq <= seq || sessionId === null) return
    page ??= readBack(sessionId, first.seq, seq)
      .catch((error: unknown) => {
        if (sessionId === state.id.value) noteFailure(state, 'older', error)
      })
      .finally(() => {
        page = null
      })
    return page
  }

  async function readBack(sessionId: string, before: Seq, seq: Seq): Promise<void> {
    const pages: StoredEvent[][] = []
    let oldest = before
    while (oldest > seq) {
      const { items } = await rest.eventsBefore(sessionId, oldest, MOST_EVENTS)
      if (sessionId !== state.id.value) return
      const first = items[0]
      if (!first) break
      pages.unshift(items)
      oldest = first.seq
    }
    state.hasOlder.value = oldest > 1 && pages.length > 0
    events.prepend(pages.flat())
  }

  function clear(): void {
    page = null
  }

  return { load, loadBackTo, clear }
}
