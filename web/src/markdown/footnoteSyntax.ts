/**
 * Footnotes: `[^1]` in the text, and `[^1]: what it says` where it is written. Both stay at their place, so that a
 * note that comes late changes no block that is finished.
 */
import type { MarkdownIt, StateBlock, StateInline } from 'markdown-it'

const MARK = /\[\^([^\]\s^]{1,64})\]/y
/** What belongs to a note is as far in as what belongs to an item of a list. */
const INDENT = 4

export function addFootnotes(md: MarkdownIt): void {
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
