/** Folds long values in the middle; what is left out is counted exactly and one key away. */

export interface Folded {
  head: string
  /** Characters, counted as people do (code points). */
  hiddenCharacters: number
  /** Line breaks among them. */
  hiddenBreaks: number
  tail: string
}

export interface FoldLimits {
  maxCharacters: number
  maxLines: number
}

export const VALUE_LIMITS: FoldLimits = { maxCharacters: 2_000, maxLines: 60 }
const HEAD_SHARE = 0.7

/** Null when the text is short enough to be shown whole. */
export function foldMiddle(text: string, limits: FoldLimits = VALUE_LIMITS): Folded | null {
  const headEnd = startOfTooMuch(text, limits, HEAD_SHARE, 1)
  const tailStart = text.length - startOfTooMuch(text, limits, 1 - HEAD_SHARE, -1)
  const isShort = text.length <= limits.maxCharacters && lineCount(text) <= limits.maxLines
  if (isShort || headEnd >= tailStart) return null
  const from = wholeCharacter(text, headEnd)
  const to = wholeCharacter(text, tailStart)
  const hidden = text.slice(from, to)
  return { head: text.slice(0, from), hiddenCharacters: characterCount(hidden), hiddenBreaks: lineCount(hidden) - 1, tail: text.slice(to) }
}

export function characterCount(text: string): number {
  const pairs = text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)?.length ?? 0
  return text.length - pairs
}

/** As a person counts: a line break at the end begins no further line. */
export function shownLineCount(text: string): number {
  return lineCount(text.replace(/\r?\n$/, ''))
}

export function lineCount(text: string): number {
  let count = 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}

export function byteCount(text: string): number {
  return new TextEncoder().encode(text).length
}

/** How many characters from this end fit into its share of both limits. */
function startOfTooMuch(text: string, limits: FoldLimits, share: number, direction: 1 | -1): number {
  const characters = Math.floor(limits.maxCharacters * share)
  const lines = Math.max(1, Math.floor(limits.maxLines * share))
  let at = direction === 1 ? -1 : text.length
  for (let line = 0; line < lines; line++) {
    const next = direction === 1 ? text.indexOf('\n', at + 1) : at <= 0 ? -1 : text.lastIndexOf('\n', at - 1)
    if (next === -1) return Math.min(characters, text.length)
    at = next
  }
  return Math.min(characters, direction === 1 ? at + 1 : text.length - at - 1)
}

/** Never between the halves of a pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at
}
