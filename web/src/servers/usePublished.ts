/** Published servers while a person types: asked for after a pause, and only the newest answer counts. */
import { onScopeDispose, ref, shallowRef, watch } from 'vue'
import { reasonOf } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { PublishedServer } from '@/wire/restTypes'

/** From the last key to the question. */
const PAUSE_MS = 300

export function usePublished() {
  const query = ref('')
  const servers = shallowRef<PublishedServer[]>([])
  const nextCursor = ref<string | null>(null)
  const state = ref<'asking' | 'found' | 'failed'>('asking')
  const reason = ref('')
  let asked = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  watch(query, () => {
    clearTimeout(timer)
    asked += 1
    state.value = 'asking'
    timer = setTimeout(() => void ask(null), PAUSE_MS)
  })
  onScopeDispose(() => {
    clearTimeout(timer)
    asked += 1
  })

  async function ask(cursor: string | null): Promise<void> {
    const turn = ++asked
    state.value = 'asking'
    try {
      const page = await rest.publishedServers(query.value.trim(), cursor)
      if (turn !== asked) return
      servers.value = cursor === null ? page.items : [...servers.value, ...page.items]
      nextCursor.value = page.nextCursor ?? null
      state.value = 'found'
    } catch (error) {
      if (turn !== asked) return
      reason.value = reasonOf(error)
      state.value = 'failed'
    }
  }

  void ask(null)
  return { query, servers, nextCursor, state, reason, again: () => ask(null), more: () => ask(nextCursor.value) }
}
