/** The one markdown parser of the page: CommonMark, GFM, formulas and footnotes without HTML, and nothing that hides text. */
import MarkdownIt from 'markdown-it'
import type { MarkdownIt as Markdown, Token } from 'markdown-it'
import { addFootnotes } from './footnoteSyntax'
import { addMath } from './mathSyntax'
import { isSafeTarget } from './targets'
import { addTasks } from './tasks'

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
