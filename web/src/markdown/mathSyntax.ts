/**
 * Formulas in what models write: `$a$`, `$$a$$`, `\(a\)` and `\[a\]`. Prices are none: a single dollar opens only
 * before, and closes only after, what is no space, and no letter or digit may touch the formula from outside.
 */
import type { MarkdownIt, StateBlock, StateInline } from 'markdown-it'

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['\\(', '\\)'],
  ['\\[', '\\]'],
  ['$$', '$$'],
])

/** "5 and -10": a price, words, and what was the dollar of the next one. */
const PRICE = /^\d[\d.,]*(?:[kKmMbB]|bn)?\s+[A-Za-z]{2,}/
/** Words between two dollars are no formula, unless there is a sign of one. */
const WORDS = /^(?=.*\s)(?=.*[A-Za-z]{2})[^\\^_={}<>+*/|]*$/s

export function addMath(md: MarkdownIt): void {
  // What a Markdown escape would eat, and emphasis the rest, is taken before both.
  md.inline.ruler.before('escape', 'math', (state, silent) => bracketed(state, silent) || dollars(state, silent))
  md.block.ruler.before('fence', 'math_block', block, { alt: ['paragraph', 'blockquote', 'list'] })
}

/** `\(a\)`, `\[a\]` and `$$a$$`. */
function bracketed(state: StateInline, silent: boolean): boolean {
  const opening = state.src.slice(state.pos, state.pos + 2)
  const closing = CLOSING.get(opening)
  const end = closing === undefined ? -1 : state.src.indexOf(closing, state.pos + 2)
  // A backslash that stands alone is an escape, and so is that of a link that should be none: `\[a\](b)`.
  if (end < 0 || end + 2 > state.posMax || state.src.startsWith('](', end + 1)) return false
  return push(state, silent, opening, end)
}

function dollars(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state
  if (src[pos] !== '$' || src[pos + 1] === '$' || isWord(src[pos - 1]) || src[pos - 1] === '$') return false
  const end = closingDollar(src, pos + 1, state.posMax)
  if (end < 0 || /^\s|\s$/.test(src.slice(pos + 1, end)) || isWord(src[end + 1]) || src[end + 1] === '$') return false
  const inner = src.slice(pos + 1, end)
  return PRICE.test(inner) || WORDS.test(inner) ? false : push(state, silent, '$', end)
}

/** The next dollar that is not escaped. */
function closingDollar(src: string, from: number, to: number): number {
  for (let at = from; at < to; at += 1) {
    if (src[at] === '\\') at += 1
    else if (src[at] === '$') return at
  }
  return -1
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /[\p{L}\p{N}]/u.test(character)
}

function push(state: StateInline, silent: boolean, opening: string, end: number): boolean {
  const tex = state.src.slice(state.pos + opening.length, end)
  if (tex.trim() === '') return false
  const next = end + opening.length
  if (!silent) {
    const token = state.push('math_inline', 'math', 0)
    token.content = tex
    token.markup = opening
    token.info = state.src.slice(state.pos, next)
  }
  state.pos = next
  return true
}

/**
 * A formula on lines of its own. TeX has no empty line in a formula, so one ends the search: a `$$` that is never
 * closed takes no more than its paragraph. One that is still being written is its source.
 */
function block(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  if ((state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false
  const first = lineAt(state, startLine)
  const opening = first.slice(0, 2)
  const closing = opening === '\\(' ? undefined : CLOSING.get(opening)
  if (closing === undefined) return false
  const end = closingLine(state, { startLine, endLine, closing })
  if (end === null) return false
  if (end.line === endLine && first.trim() !== opening) return false
  if (silent) return true
  const next = Math.min(end.line + 1, endLine)
  const raw = state.getLines(startLine, next, state.blkIndent, false).trim()
  const token = state.push('math_block', 'math', 0)
  token.map = [startLine, next]
  token.markup = opening
  token.info = raw
  token.content = end.line === endLine ? '' : raw.slice(2, -2)
  state.line = next
  return true
}

/** The line that ends with the closing sign; `endLine` where the text ends before, null where it is no formula. */
function closingLine(state: StateBlock, { startLine, endLine, closing }: { startLine: number; endLine: number; closing: string }): { line: number } | null {
  for (let line = startLine; line < endLine; line += 1) {
    if (line > startLine && (state.isEmpty(line) || (state.sCount[line] ?? 0) < state.blkIndent)) return null
    const text = lineAt(state, line)
    const at = text.indexOf(closing, line === startLine ? 2 : 0)
    if (at >= 0) return text.slice(at + 2).trim() === '' ? { line } : null
  }
  return { line: endLine }
}

function lineAt(state: StateBlock, line: number): string {
  return state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line] ?? 0)
}
