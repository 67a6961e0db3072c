/** The sign before the caret that asks for a list of completions. Pure. */

export type OfferKind = 'resources' | 'prompts'

export interface Trigger {
  kind: OfferKind
  /** Where the sign stands in the text. */
  start: number
  /** Behind the last character of the word; the caret stands there. */
  end: number
  /** The word without its sign. */
  query: string
}

/** `/` asks for prompts where the message begins; `@` asks for resources where a word begins. A path ends both. */
const PATTERNS: readonly (readonly [OfferKind, RegExp])[] = [
  ['prompts', /^\/([^\s/]*)$/],
  ['resources', /(?<=^|\s)@([^\s@/]*)$/],
]

/** The trigger whose word ends at the caret; null inside a word, and everywhere else. */
export function triggerAt(text: string, caret: number): Trigger | null {
  const next = text[caret]
  if (next !== undefined && !/\s/.test(next)) return null
  for (const [kind, pattern] of PATTERNS) {
    const found = pattern.exec(text.slice(0, caret))
    if (found) return { kind, start: found.index, end: caret, query: found[1] ?? '' }
  }
  return null
}

export function isSameTrigger(one: Trigger | null, other: Trigger | null): boolean {
  return one?.kind === other?.kind && one?.start === other?.start
}
