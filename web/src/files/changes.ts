/** The history of the open session's files, read once for all that shows it, and again when something has happened. */
import { effectScope, ref, shallowRef, watch } from 'vue'
import { useSession } from '@/session/store/session'
import { door, reasonOf, type Change } from './historyDoor'

/** What happens in the conversation comes in bursts. */
const REFRESH_MS = 300

const changes = shallowRef<Change[]>([])
const problem = ref('')
const isRead = ref(false)
let isFollowing = false
let asked = 0

/** Reads it again; what is shown stays until it is there. */
export async function refreshChanges(): Promise<void> {
  const id = useSession().id
  const turn = ++asked
  if (id === null) return
  try {
    const items = await door.list(id)
    if (turn !== asked) return
    changes.value = items
    problem.value = ''
    isRead.value = true
  } catch (error) {
    if (turn === asked) problem.value = reasonOf(error)
  }
}

export function useChanges() {
  if (!isFollowing) follow()
  return { changes, problem, isRead, refresh: refreshChanges }
}

function follow(): void {
  isFollowing = true
  const session = useSession()
  let timer: ReturnType<typeof setTimeout> | undefined
  // As long as the page: whoever asks first does not own it.
  effectScope(true).run(() => {
    watch(() => session.id, () => {
      changes.value = []
      isRead.value = false
      void refreshChanges()
    }, { immediate: true })
    watch(() => session.conversation.seq, () => {
      clearTimeout(timer)
      timer = setTimeout(() => void refreshChanges(), REFRESH_MS)
    })
  })
}

/** How many entries a step changed. */
export function countOf({ created, modified, deleted }: Change): number {
  return created + modified + deleted
}
