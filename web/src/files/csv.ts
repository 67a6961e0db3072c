/** Comma-separated values (RFC 4180), as far as they are shown. */

/** Rows and columns that are drawn at most. */
export const MAX_ROWS = 500
const MAX_COLUMNS = 100

export interface Table {
  head: string[]
  rows: string[][]
  /** There are more rows. */
  isCut: boolean
}

export function parseTable(text: string, separator: ',' | '\t'): Table {
  const rows: string[][] = []
  let [row, cell, isQuoted]: [string[], string, boolean] = [[], '', false]
  const endCell = () => {
    if (row.length < MAX_COLUMNS) row.push(cell)
    cell = ''
  }
  const endRow = () => {
    endCell()
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
  }
  let at = 0
  for (; at < text.length && rows.length <= MAX_ROWS; at += 1) {
    const letter = text[at] ?? ''
    if (isQuoted) {
      if (letter !== '"') cell += letter
      else if (text[at + 1] === '"') {
        cell += '"'
        at += 1
      } else isQuoted = false
    } else if (letter === '"' && cell === '') isQuoted = true
    else if (letter === separator) endCell()
    else if (letter === '\n') endRow()
    else if (letter !== '\r' || text[at + 1] !== '\n') cell += letter
  }
  if (at >= text.length && (cell !== '' || row.length > 0)) endRow()
  const [head = [], ...body] = rows
  return { head, rows: body.slice(0, MAX_ROWS), isCut: at < text.length || body.length > MAX_ROWS }
}
