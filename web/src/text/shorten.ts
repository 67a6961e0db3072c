/** Shortens text: in one line, or folded in the middle. Hidden characters are visible, and omitted text is counted, never cut silently. */
import { t } from '@/locales'
import { count } from '@/locales/format'
import { visibleText } from './hiddenCharacters'

const LINE_CHARACTERS = 120
/** Leaving out less than this would save no room. */
const WORTH_FOLDING = 24

/** Folded in the middle when it is long; characters are counted as people do (code points). */
export function inOneLine(text: string, limit = LINE_CHARACTERS): string {
  const characters = [...text]
  if (characters.length <= limit + WORTH_FOLDING) return drawn(text)
  const half = Math.floor(limit / 2)
  return t('approval.foldedInline', {
    head: drawn(characters.slice(0, half).join('')),
    n: count(characters.length - 2 * half),
    tail: drawn(characters.slice(-half).join('')),
  })
}

/** The first line that holds something, and how many lines there are beside it. */
export function firstLineOf(text: string, limit = LINE_CHARACTERS): string {
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/)
  const line = inOneLine(lines.find((each) => each.trim() !== '') ?? '', limit)
  return lines.length === 1 ? line : t('approval.firstLine', { line, n: lines.length - 1 })
}

function drawn(text: string): string {
  return visibleText(text, { oneLine: true })
}

// Folds long values in the middle; what is left out is counted exactly and one key away.

interface Folded {
  head: string
  /** Characters, counted as people do (code points). */
  hiddenCharacters: number
  /** Line breaks among them. */
  hiddenBreaks: number
  tail: string
}

interface FoldLimits {
  maxCharacters: number
  maxLines: number
}

const VALUE_LIMITS: FoldLimits = { maxCharacters: 2_000, maxLines: 60 }
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
