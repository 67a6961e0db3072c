/** A line diff as rows, ready to be drawn; pure. */
import { diffArrays } from 'diff'

export interface Row {
  kind: 'same' | 'added' | 'removed'
  text: string
  /** Line numbers from 1; absent on the side where the line does not exist. */
  before?: number
  after?: number
}

/** Unchanged lines that are passed over until somebody asks for them. */
export interface Gap {
  kind: 'gap'
  rows: Row[]
}

const CONTEXT_LINES = 3
/** Longer searches are given up: then the whole old text is removed and the new one added. */
const DIFF_TIMEOUT_MS = 300

export function diffRows(before: string, after: string): Row[] {
  // Where both end their last line, nothing follows it; where one alone does, that is a difference.
  const isEnded = before.endsWith('\n') && after.endsWith('\n')
  const linesOf = (text: string) => (isEnded ? text.slice(0, -1) : text).split('\n')
  const from = linesOf(before)
  const to = linesOf(after)
  const changes = diffArrays(from, to, { timeout: DIFF_TIMEOUT_MS }) ?? [
    { value: from, added: false, removed: true },
    { value: to, added: true, removed: false },
  ]
  const rows: Row[] = []
  let oldLine = 0
  let newLine = 0
  for (const change of changes) {
    for (const text of change.value) {
      if (change.added) rows.push({ kind: 'added', text, after: ++newLine })
      else if (change.removed) rows.push({ kind: 'removed', text, before: ++oldLine })
      else rows.push({ kind: 'same', text, before: ++oldLine, after: ++newLine })
    }
  }
  return rows
}

/** Keeps some lines around every change and folds the rest into gaps. */
export function withGaps(rows: Row[]): (Row | Gap)[] {
  const kept = new Set<number>()
  rows.forEach((row, index) => {
    if (row.kind === 'same') return
    for (let near = index - CONTEXT_LINES; near <= index + CONTEXT_LINES; near++) kept.add(near)
  })
  const result: (Row | Gap)[] = []
  rows.forEach((row, index) => {
    const last = result.at(-1)
    if (kept.has(index)) result.push(row)
    else if (last?.kind === 'gap') last.rows.push(row)
    else result.push({ kind: 'gap', rows: [row] })
  })
  return result.flatMap((entry) => (entry.kind === 'gap' && entry.rows.length <= 2 ? entry.rows : [entry]))
}

export function changeCounts(rows: Row[]): { added: number; removed: number } {
  return {
    added: rows.filter(({ kind }) => kind === 'added').length,
    removed: rows.filter(({ kind }) => kind === 'removed').length,
  }
}
