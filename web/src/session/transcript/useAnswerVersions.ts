/** Which of several answers to the same message is shown: the newest, unless the person looks at an older one. */
import { computed, shallowRef, watch, type Ref } from 'vue'
import type { Conversation } from '@/session/conversation/conversation'
import { shownVersion } from '@/session/conversation/rows'

export function useAnswerVersions(conversation: () => Conversation, isAtNewest: Readonly<Ref<boolean>>) {
  /** The older answers that the person looks at, by group. */
  const chosen = shallowRef<ReadonlyMap<string, number>>(new Map())
  const versions = computed(() => {
    const { versions: of, version } = conversation()
    return { of, shown: chosen.value, open: isAtNewest.value ? (version?.group ?? null) : null }
  })
  /** What is being said is not shown under an older answer to the same message. */
  const isNewestShown = computed(() => {
    const { version } = conversation()
    return isAtNewest.value && (!version || shownVersion(versions.value, version.group) === version.n)
  })

  // Asked for again, here or elsewhere, the answer that is made is the one to read.
  watch(
    () => conversation().version,
    (now, before) => {
      if (now && now.group === before?.group) look(now.group, null)
    },
  )

  /** `null` goes back to the newest. */
  function look(group: string, n: number | null): void {
    const next = new Map(chosen.value)
    if (n === null) next.delete(group)
    else next.set(group, n)
    chosen.value = next
  }

  function lookAtNewest(): void {
    chosen.value = new Map()
  }

  return { versions, isNewestShown, look, lookAtNewest }
}
