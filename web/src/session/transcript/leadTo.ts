/** Leads to a place of the transcript that is wished for: reads it, draws it, and brings it into view. Loaded with the first wish. */
import { nextTick, watch, type Ref } from 'vue'
import { loadMarkdown } from '@/markdown/blocks'
import type { Row } from '@/session/conversation/rows'
import type { useSession } from '@/session/store/session'
import type { Seq } from '@/wire/types'

/** What the transcript can do about it. */
export interface Drawing {
  scroller: Readonly<Ref<HTMLElement | null>>
  rows: Readonly<Ref<readonly Row[]>>
  /** Rows that are still to be drawn above. */
  undrawn: Readonly<Ref<number>>
  /** Whether the end is followed, which ends with it. */
  isFollowing: Ref<boolean>
  /** The row that was led to. */
  marked: Ref<string | null>
  drawAround: (index: number) => void
  /** So many entries were read on the way, which are not new. */
  skip: (entries: number) => void
  /** Shows the version of an answer that has it. */
  look: (group: string, n: number) => void
}

export async function leadTo(seq: Seq, session: ReturnType<typeof useSession>, drawing: Drawing): Promise<void> {
  const { scroller, rows, undrawn, isFollowing, marked, drawAround, skip, look } = drawing
  await loadMarkdown()
  const before = session.conversation.entries.length
  await session.loadBackTo(seq)
  const key = session.entryAt(seq)
  const { entries } = session.conversation
  skip(entries.length - before)
  const index = entries.findIndex((entry) => entry.key === key)
  const entry = entries[index]
  if (!entry) return
  if (entry.version) look(entry.version.group, entry.version.n)
  isFollowing.value = false
  drawAround(index)
  await nextTick()
  await allDrawn(undrawn)
  const row = rows.value.find((row) => row.key === key || (row.kind === 'calls' && row.calls.some((call) => call.key === key)))
  if (!row) return
  marked.value = row.key
  await nextTick()
  scroller.value?.querySelector<HTMLElement>(`[data-key="${CSS.escape(row.key)}"]`)?.scrollIntoView({ block: 'center' })
}

/** A long part is drawn over several frames. */
function allDrawn(undrawn: Readonly<Ref<number>>): Promise<void> {
  if (undrawn.value === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const stop = watch(undrawn, (left) => {
      if (left > 0) return
      stop()
      void nextTick(resolve)
    })
  })
}
