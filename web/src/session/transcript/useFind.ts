/** What is found in the open session: the server looks, because the page has only a part of it. */
import { onScopeDispose, ref, shallowRef, watch } from 'vue'
import { hasWord } from '@/search/search'
import { jumpTo } from './jump'
import { rest } from '@/wire/rest'
import type { Seq } from '@/wire/types'

/** From the last key to the question. */
const PAUSE_MS = 200

export function useFind(sessionId: () => string | null) {
  const query = ref('')
  /** Events that have it, oldest first. */
  const found = shallowRef<readonly Seq[]>([])
  /** The one that is shown; the newest first, as the end is what is read. */
  const at = ref(0)
  const state = ref<'empty' | 'asking' | 'found' | 'failed'>('empty')
  let asked = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  watch([query, sessionId], ([text]) => {
    clearTimeout(timer)
    asked += 1
    found.value = []
    state.value = hasWord(text) ? 'asking' : 'empty'
    if (state.value === 'asking') timer = setTimeout(() => void ask(), PAUSE_MS)
  })
  onScopeDispose(() => {
    clearTimeout(timer)
    asked += 1
  })

  async function ask(): Promise<void> {
    const turn = ++asked
    const id = sessionId()
    if (id === null) return
    try {
      const { items } = await rest.searchIn(id, query.value)
      if (turn !== asked) return
      found.value = items
      state.value = 'found'
      show(items.length - 1)
    } catch {
      if (turn === asked) state.value = 'failed'
    }
  }

  /** Goes on in a circle, to newer ones or to older ones. */
  function step(by: 1 | -1): void {
    const { length } = found.value
    if (length > 0) show((at.value + by + length) % length)
  }

  function show(index: number): void {
    const seq = found.value[index]
    if (seq === undefined) return
    at.value = index
    jumpTo(seq)
  }

  return { query, found, at, state, step }
}
