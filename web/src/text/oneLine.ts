/** Text of any length in one line: hidden characters visible, and what is left out counted, never cut silently. */
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
