/**
 * What views let the model know (`ui/update-model-context`): shown beside the message that is being written, and sent
 * with it by the person. Kept with the page alone, as the views are that say it.
 */
import { shallowReactive } from 'vue'

export interface ViewContext {
  /** The call whose view it is. */
  callId: string
  /** Of the tool, and of its server. */
  name: string
  server: string
  text: string
}

/** The server's limit of a message. */
export const MOST_CONTEXTS = 4

/** What is kept for the message that is being written is kept under this. */
export function draftKey({ typist, id }: { typist: string; id: string | null }): string {
  return `draft.${typist}.${id ?? 'new'}`
}

const kept = shallowReactive(new Map<string, readonly ViewContext[]>())
/** Views whose words the person took out of a message; they add nothing until they are shown anew. */
const leftOut = new Set<string>()

/** Those of one person in one session, in the order in which their views began to add. */
export function contextsOf(draft: string): readonly ViewContext[] {
  return kept.get(draft) ?? []
}

/** Takes the place of what the same view added before. Says why not, where it does not. */
export function addContext(draft: string, context: ViewContext): 'full' | 'leftOut' | null {
  const now = contextsOf(draft)
  const isKnown = now.some(({ callId }) => callId === context.callId)
  if (leftOut.has(keyOf(draft, context.callId))) return 'leftOut'
  if (!isKnown && now.length >= MOST_CONTEXTS) return 'full'
  kept.set(draft, isKnown ? now.map((other) => (other.callId === context.callId ? context : other)) : [...now, context])
  return null
}

/** Without a call all of them go. */
export function dropContext(draft: string, callId?: string): void {
  kept.set(draft, callId === undefined ? [] : contextsOf(draft).filter((context) => context.callId !== callId))
}

/** The person does not want it, and not the next one of the same view either. */
export function leaveOut(draft: string, callId: string): void {
  leftOut.add(keyOf(draft, callId))
  dropContext(draft, callId)
}

/** The view is shown anew. */
export function letAdd(draft: string, callId: string): void {
  leftOut.delete(keyOf(draft, callId))
}

function keyOf(draft: string, callId: string): string {
  return `${draft} ${callId}`
}

// Text from elsewhere in the page for the message that is being written. Only the person sends it.

type Taker = (words: string) => void

/** Whoever takes text now; the last one that asked. */
const takers: Taker[] = []

/** Gives text to `taker`, until the answer is called. */
export function takeText(taker: Taker): () => void {
  takers.push(taker)
  return () => void takers.splice(takers.indexOf(taker), 1)
}

/** Whether somebody took it. */
export function giveText(words: string): boolean {
  const taker = takers.at(-1)
  taker?.(words)
  return taker !== undefined
}
