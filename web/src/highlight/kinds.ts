/**
 * What crosses between the page and the highlighter: only how far each kind of text reaches.
 * The text itself is always the page's own, so nothing that the highlighter does can change or add any.
 */

/** The looks a piece of code can have; the place in this list is what is sent. `plain` has no element of its own. */
export const KINDS = ['plain', 'aside', 'keyword', 'string', 'number', 'name', 'added', 'removed'] as const
export type Kind = (typeof KINDS)[number]

/** Length and place in `KINDS`, by turns: `[3, 2, 4, 0]` is a keyword of 3 characters and 4 plain ones. */
export type Runs = number[]

export interface Piece {
  kind: Kind
  text: string
}

export interface Request {
  source: string
  language: string
}

/** The worker says once that it is there, then answers each request. Null: the code stays plain. */
export type Answer = 'ready' | { runs: Runs | null }

/** Longer code stays plain: colours would cost more than they help. In characters. */
export const MAX_HIGHLIGHTED = 50_000

/**
 * Code in more pieces than this stays plain, for about every second one is an element, and all are laid out at once:
 * on a processor slowed to a quarter 1,000 take about 50 ms, and 10,000 held the page for more than a second.
 */
export const MAX_PIECES = 1_000

const LANGUAGE = /^[A-Za-z0-9+#._-]{1,32}$/

/** Names that say there is nothing to highlight. */
const PLAIN_NAMES = new Set(['text', 'txt', 'plain', 'plaintext', 'none', 'output'])

/** The name that a fence gives, as in "```rust,ignore"; undefined if it is none. The model chooses it. */
export function languageOf(info: string): string | undefined {
  const [name = ''] = info.split(/[\s,{:]/, 1)
  return LANGUAGE.test(name) ? name : undefined
}

export function isWorthAsking({ source, language }: Request): boolean {
  return source !== '' && source.length <= MAX_HIGHLIGHTED && !PLAIN_NAMES.has(language.toLowerCase())
}

/** Null when the runs do not cover exactly this text. */
export function cut(source: string, runs: Runs | null): Piece[] | null {
  if (runs === null || runs.length > 2 * MAX_PIECES) return null
  const pieces: Piece[] = []
  let start = 0
  for (let at = 0; at < runs.length; at += 2) {
    const length = runs[at] ?? 0
    const kind = KINDS[runs[at + 1] ?? -1]
    if (kind === undefined || !(length > 0)) return null
    pieces.push({ kind, text: source.slice(start, start + length) })
    start += length
  }
  return start === source.length ? pieces : null
}
