/** Where the transcript is to be looked at: a search, or a link, leads there. */
import { shallowRef } from 'vue'
import type { Seq } from '@/wire/types'

/** The newest wish; the same place may be wished for again. */
export const target = shallowRef<{ seq: Seq } | null>(null)

export function jumpTo(seq: Seq): void {
  target.value = { seq }
}
