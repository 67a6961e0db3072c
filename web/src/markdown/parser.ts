/** The one markdown parser of the page: CommonMark, GFM, formulas and footnotes without HTML, and nothing that hides text. */
import MarkdownIt, { type MarkdownIt as Markdown, type StateBlock, type StateInline, type Token } from 'markdown-it'
import { isSafeTarget } from './targets'

export type { Token }

/** Quotes and lists nested deeper than this stay text: the parser itself would drop their tail. */
const MAX_BLOCK_LEVEL = 24

/** A longer paragraph is drawn as it is: inline syntax costs more than linear time in bad cases. */
const MAX_INLINE_CHARACTERS = 10_000

const parser = createParser()

export function parse(source: string): Token[] {
  return parser.parse(source, {})
}

function createParser(): Markdown {
  const md = new MarkdownIt('default', { html: false, linkify: true, typographer: false, breaks: false })
  // A reference definition would vanish from the text, and could change blocks that are finished.
  md.disable(['reference'])
  md.validateLink = isSafeTarget
  // The text of a link is what the model wrote, not a decoded form of its target.
  md.normalizeLinkText = (text) => text
  md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false })
  md.linkify.add('//', null).add('ftp:', null)
  boundNesting(md)
  boundInline(md)
  addMath(md)
  addFootnotes(md)
  addTasks(md)
  return md
}

function boundNesting(md: Markdown): void {
  for (const name of ['blockquote', 'list']) {
    const rule = md.block.ruler.__rules__.find((candidate) => candidate.name === name)
    if (rule === undefined) throw new Error(`the markdown parser has no rule \`${name}\``)
    const original = rule.fn
    md.block.ruler.at(name, (state, startLine, endLine, silent) =>
      state.level < MAX_BLOCK_LEVEL && original(state, startLine, endLine, silent), { alt: rule.alt })
  }
}

function boundInline(md: Markdown): void {
  md.core.ruler.after('block', 'bound_inline', (state) => {
    for (const token of state.tokens) {
      if (token.type === 'inline' && token.content.length > MAX_INLINE_CHARACTERS) token.type = 'text'
    }
  })
}

// Task lists: items that begin with `[ ]` or `[x]` get a box that cannot be ticked.

const BOX = /^\[([ xX])\](?=\s)/

function addTasks(md: Markdown): void {
  md.core.ruler.after('bound_inline', 'tasks', (state) => {
    for (const [index, token] of state.tokens.entries()) {
      const isFirst = state.tokens[index - 1]?.type === 'paragraph_open' && state.tokens[index - 2]?.type === 'list_item_open'
      const box = isFirst && token.type === 'inline' ? BOX.exec(token.content)?.[1] : undefined
      if (box === undefined) continue
      token.content = token.content.slice(3).trimStart()
      token.meta = { task: box === ' ' ? 'open' : 'done' }
    }
  })
}

// Footnotes: `[^1]` in the text, and `[^1]: what it says` where it is written. Both stay at their place, so that a
// note that comes late changes no block that is finished.

const MARK = /\[\^([^\]\s^]{1,64})\]/y
/** What belongs to a note is as far in as what belongs to an item of a list. */
const INDENT = 4

function addFootnotes(md: Markdown): void {
  // `[^1](address)` is a link.
  md.inline.ruler.after('image', 'footnote_mark', mark)
  md.block.ruler.before('heading', 'footnote', note, { alt: ['paragraph'] })
}

/** The label at that place, and where it ends; null = there is none. */
function labelAt(src: string, at: number): { label: string; end: number } | null {
  MARK.lastIndex = at
  const label = MARK.exec(src)?.[1]
  return label === undefined ? null : { label, end: MARK.lastIndex }
}

function mark(state: StateInline, silent: boolean): boolean {
  const found = labelAt(state.src, state.pos)
  if (found === null || found.end > state.posMax) return false
  if (!silent) {
    const token = state.push('footnote_mark', '', 0)
    token.content = found.label
  }
  state.pos = found.end
  return true
}

function note(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  if (state.level > 0 || (state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false
  const start = (state.bMarks[startLine] ?? 0) + (state.tShift[startLine] ?? 0)
  const found = labelAt(state.src, start)
  if (found === null || state.src[found.end] !== ':') return false
  if (silent) return true
  const open = state.push('footnote_open', 'div', 1)
  open.content = found.label
  readBody(state, { startLine, endLine, start: found.end + 1 })
  open.map = [startLine, state.line]
  state.push('footnote_close', 'div', -1)
  return true
}

/** Reads what follows the colon as a document of its own, as the rule of lists does. */
function readBody(state: StateBlock, { startLine, endLine, start }: { startLine: number; endLine: number; start: number }): void {
  const before = { mark: state.bMarks[startLine] ?? 0, shift: state.tShift[startLine] ?? 0, indent: state.sCount[startLine] ?? 0 }
  const spaces = /[ \t]*/y
  spaces.lastIndex = start
  const shift = spaces.exec(state.src.slice(0, state.eMarks[startLine]))?.[0].length ?? 0
  state.bMarks[startLine] = start
  state.tShift[startLine] = shift
  state.blkIndent += INDENT
  state.sCount[startLine] = state.blkIndent
  state.md.block.tokenize(state, startLine, endLine)
  state.blkIndent -= INDENT
  state.bMarks[startLine] = before.mark
  state.tShift[startLine] = before.shift
  state.sCount[startLine] = before.indent
}

// Formulas in what models write: `$a$`, `$$a$$`, `\(a\)` and `\[a\]`. Prices are none: a single dollar opens only
// before, and closes only after, what is no space, and no letter or digit may touch the formula from outside.

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['\\(', '\\)'],
  ['\\[', '\\]'],
  ['$$', '$$'],
])

/** "5 and -10": a price, words, and what was the dollar of the next one. */
const PRICE = /^\d[\d.,]*(?:[kKmMbB]|bn)?\s+[A-Za-z]{2,}/
/** Words between two dollars are no formula, unless there is a sign of one. */
const WORDS = /^(?=.*\s)(?=.*[A-Za-z]{2})[^\\^_={}<>+*/|]*$/s

function addMath(md: Markdown): void {
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
