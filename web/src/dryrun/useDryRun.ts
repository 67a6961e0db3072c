/** The dry run of a call that waits: begun, ended, and followed where no socket tells of it. */
import { computed, onScopeDispose, ref, watch } from 'vue'
import type { QueueCall } from '@/wire/types'
import { door, reasonOf } from './door'

/** How often one is looked at that no socket tells of. */
const LOOK_EVERY_MS = 1000

export function useDryRun(call: () => QueueCall, session: () => string | null, isFollowed: () => boolean) {
  const refusal = ref<string | null>(null)
  const isBusy = ref(false)
  /** What a look showed; undefined = nobody looked, so the card says it. */
  const looked = ref<QueueCall['dryRun'] | null>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let isGone = false

  const shown = computed(() => (looked.value === undefined ? (call().dryRun ?? null) : looked.value))

  async function ask(request: (id: string) => Promise<unknown>): Promise<void> {
    const id = session()
    if (id === null || isBusy.value) return
    isBusy.value = true
    refusal.value = null
    try {
      await request(id)
      if (!isFollowed()) await look(id)
    } catch (error) {
      refusal.value = reasonOf(error)
    }
    isBusy.value = false
  }

  async function look(id: string): Promise<void> {
    clearTimeout(timer)
    looked.value = await door.read(id, call().callId)
    if (looked.value?.status === 'running') lookLater(id)
  }

  /** A look that fails is made again: what runs would else be shown as running for ever. */
  function lookLater(id: string): void {
    if (isGone) return
    timer = setTimeout(() => void look(id).catch(() => lookLater(id)), LOOK_EVERY_MS)
  }

  /** The card has caught up, or is another one. */
  watch(call, () => {
    clearTimeout(timer)
    looked.value = undefined
  })
  onScopeDispose(() => {
    isGone = true
    clearTimeout(timer)
  })

  return {
    shown,
    refusal,

    begin: () => ask((id) => door.begin(id, call().callId, call().digest)),
    drop: () => ask((id) => door.drop(id, call().callId)),
  }
}
