/** What is found in the sessions while a person types: asked for after a pause, and only the newest answer counts. */
import { computed, onScopeDispose, ref, shallowRef, watch } from 'vue'
import { rest } from '@/wire/rest'
import type { FoundSession, SearchHit } from '@/wire/restTypes'

/** From the last key to the question. */
const PAUSE_MS = 150

/** One line of the results. */
export interface FoundLine {
  id: string
  session: FoundSession
  hit: SearchHit
}

export function useSearch() {
  const query = ref('')
  const found = shallowRef<FoundSession[]>([])
  const nextCursor = ref<string | null>(null)
  const isIndexing = ref(false)
  const state = ref<'empty' | 'asking' | 'found' | 'failed'>('empty')
  let asked = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  /** In the order in which they are drawn, so that the arrow keys go through them. */
  const lines = computed<FoundLine[]>(() =>
    found.value.flatMap((session) => session.hits.map((hit, at) => ({ id: `found-${session.sessionId}-${at}`, session, hit }))),
  )

  watch(query, (now) => {
    clearTimeout(timer)
    asked += 1
    if (!hasWord(now)) {
      state.value = 'empty'
      found.value = []
      nextCursor.value = null
      return
    }
    state.value = 'asking'
    timer = setTimeout(() => void ask(null), PAUSE_MS)
  })
  onScopeDispose(() => {
    clearTimeout(timer)
    asked += 1
  })

  async function ask(cursor: string | null): Promise<void> {
    const turn = ++asked
    try {
      const page = await rest.search(query.value, cursor)
      if (turn !== asked) return
      found.value = cursor === null ? page.items : joined(found.value, page.items)
      nextCursor.value = page.nextCursor ?? null
      isIndexing.value = page.isIndexing
      state.value = 'found'
    } catch {
      if (turn === asked) state.value = 'failed'
    }
  }

  return { query, found, lines, nextCursor, isIndexing, state, again: () => ask(null), more: () => ask(nextCursor.value) }
}

/** Whether there is something to look for: the server refuses signs alone. */
export function hasWord(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text)
}

/** A later page may have more of a session that is there already. */
export function joined(before: readonly FoundSession[], more: readonly FoundSession[]): FoundSession[] {
  const known = new Map(before.map((session) => [session.sessionId, session]))
  for (const session of more) {
    const first = known.get(session.sessionId)
    known.set(session.sessionId, first ? { ...first, hits: [...first.hits, ...session.hits], hasMore: session.hasMore } : session)
  }
  return [...known.values()]
}
