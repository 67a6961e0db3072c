/** The sessions that share a part of their past with the open one; asked for when it opens, and when a fork may have come. */
import { computed, onScopeDispose, shallowRef, watch } from 'vue'
import { rest } from '@/wire/rest'
import { branchesOf, type Branch, type Relative } from './branches'

/** `isReady`: the session is known to the server. */
export function useBranches(id: () => string | null, isReady: () => boolean) {
  const family = shallowRef<readonly Relative[]>([])
  const branches = computed<readonly Branch[]>(() => branchesOf(id() ?? '', family.value))
  let asked = 0

  async function refresh(): Promise<void> {
    const session = id()
    const turn = ++asked
    if (session === null || !isReady()) return
    // Without an answer the transcript is whole all the same.
    const items = await rest.forks(session).then((answer) => answer.items, () => null)
    if (turn === asked && items) family.value = items
  }

  watch([id, isReady], ([now], [before] = [null, false]) => {
    if (now !== before) family.value = []
    void refresh()
  }, { immediate: true })
  onScopeDispose(() => (asked += 1))

  return { branches }
}
