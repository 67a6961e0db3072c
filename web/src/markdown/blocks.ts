/**
 * Cuts a growing text into top-level blocks. A finished block keeps its object for good,
 * so that it is neither parsed nor drawn again while the rest streams in.
 */
import { computed, shallowRef } from 'vue'
import type { Token } from './parser'

export interface Block {
  /** Offset in the text; stable, so it serves as the key. */
  start: number
  source: string
  /** Null for the part that is too long to be formatted. */
  tokens: Token[] | null
}

/** What comes after this many characters is shown as plain text. */
export const MAX_FORMATTED_CHARACTERS = 200_000

interface Span {
  line: number
  tokens: Token[]
}

export class BlockStream {
  private finished: Block[] = []
  private open: Block[] = []
  private committed = ''
  private isWhole = false

  constructor(private readonly parse: (source: string) => Token[]) {}

  /** `isWhole` says that nothing follows; then everything is read once more as one document. */
  update(text: string, isWhole: boolean): Block[] {
    const normal = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
    const [source, tail] = splitTail(normal)
    this.isWhole = isWhole
    const blocks = isWhole ? this.readWhole(source) : this.readTail(source)
    return tail === '' ? blocks : [...blocks, { start: source.length, source: tail, tokens: null }]
  }

  /** How many of the blocks given last, from the first, will not change any more. */
  get finishedCount(): number {
    return this.isWhole ? this.finished.length + this.open.length : this.finished.length + closedCode(this.open)
  }

  private readWhole(source: string): Block[] {
    const known = new Map([...this.finished, ...this.open].map((block) => [block.start, block]))
    this.finished = []
    this.committed = ''
    this.open = this.read(source, 0).map(({ block }) => reused(block, known.get(block.start)))
    return this.open
  }

  private readTail(source: string): Block[] {
    if (!source.startsWith(this.committed)) {
      this.finished = []
      this.committed = ''
    }
    const known = new Map(this.open.map((block) => [block.start, block]))
    const tail = source.slice(this.committed.length)
    const read = this.read(tail, this.committed.length)
    const firstOpen = firstOpenIndex(read.map(({ line }) => line), tail)
    const blocks = read.map(({ block }) => reused(block, known.get(block.start)))
    this.finished.push(...blocks.slice(0, firstOpen))
    this.open = blocks.slice(firstOpen)
    if (firstOpen > 0) this.committed = source.slice(0, this.open[0]?.start ?? this.committed.length)
    return [...this.finished, ...this.open]
  }

  private read(source: string, offset: number): { block: Block; line: number }[] {
    const spans = topLevel(this.parse(source))
    const starts = lineStarts(source)
    return spans.map((span, index) => {
      const from = starts[span.line] ?? 0
      const next = spans[index + 1]
      const to = next === undefined ? source.length : (starts[next.line] ?? source.length)
      return { line: span.line, block: { start: offset + from, source: source.slice(from, to), tokens: span.tokens } }
    })
  }
}

/**
 * A block is finished when a later one has begun on a complete line with another complete line below it:
 * only then can no further character make the two one (a list going on, a table's second line).
 */
function firstOpenIndex(lines: number[], tail: string): number {
  const complete = tail.split('\n').length - 1
  return Math.max(0, lines.findLastIndex((line) => line + 1 < complete))
}

/** Code at the head of what is open ends where a later block begins, without the two lines that others need. */
function closedCode(open: Block[]): number {
  const isCode = (block: Block | undefined) => block?.tokens?.[0]?.type === 'fence' || block?.tokens?.[0]?.type === 'code_block'
  return open.length > 1 && isCode(open[0]) ? 1 : 0
}

function reused(block: Block, known: Block | undefined): Block {
  return known !== undefined && known.source === block.source ? known : block
}

function topLevel(tokens: Token[]): Span[] {
  const spans: Span[] = []
  let depth = 0
  for (const token of tokens) {
    const last = spans.at(-1)
    if (depth === 0) spans.push({ line: token.map?.[0] ?? last?.line ?? 0, tokens: [token] })
    else last?.tokens.push(token)
    depth += token.nesting
  }
  return spans
}

function lineStarts(source: string): number[] {
  const starts = [0]
  for (let at = source.indexOf('\n'); at !== -1; at = source.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

function splitTail(text: string): [string, string] {
  if (text.length <= MAX_FORMATTED_CHARACTERS) return [text, '']
  const lineEnd = text.lastIndexOf('\n', MAX_FORMATTED_CHARACTERS) + 1
  const cut = lineEnd > 0 ? lineEnd : MAX_FORMATTED_CHARACTERS
  return [text.slice(0, cut), text.slice(cut)]
}

// The Markdown parser, which comes beside the connection: a third of what a session weighs, and nothing of it is
// needed before there are words to read.

const loaded = shallowRef<(source: string) => Token[]>()
let loading: Promise<void> | null = null

/** Whether text can be drawn as Markdown. */
export const isMarkdownReady = computed(() => loaded.value !== undefined)

/** A parser that cannot be loaded is told by the strip, and asked for again by whoever needs it next. */
export function loadMarkdown(): Promise<void> {
  loading ??= import('./parser')
    .then((parser: typeof import('./parser') | undefined) => {
      loaded.value = parser?.parse
    })
    .catch(() => {})
    .finally(() => {
      loading = null
    })
  return loading
}

export function parse(source: string): Token[] {
  if (!loaded.value) throw new Error('text is drawn before its parser is there')
  return loaded.value(source)
}
