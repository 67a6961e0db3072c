/** What is known of the file that a call would write, in words. */
import { t } from '@/locales'
import { byteSize } from '@/locales/format'
import { byteCount, shownLineCount } from './shorten'
import type { FileFacts } from '@/wire/types'

/** Where it is said: `cue` stands alone, `summary` in a row beside other words. */
export function fileText(file: FileFacts, where: 'cue' | 'summary'): string {
  if (!file.exists) return t(`approval.file.${where}New`)
  if (file.lines !== undefined) return t(`approval.file.${where}Lines`, { lines: file.lines })
  return t(`approval.file.${where}Bytes`, { size: byteSize(file.bytes) })
}

/** The size of new content, and of what it replaces as far as that is known. */
export function contentText(content: string, file: FileFacts | undefined): string {
  const size = { lines: shownLineCount(content), bytes: byteCount(content) }
  if (file === undefined) return t('approval.newContent', size)
  if (!file.exists) return t('approval.newFile', size)
  if (file.lines !== undefined) return t('approval.newContentForLines', { ...size, before: file.lines })
  return t('approval.newContentForBytes', { ...size, before: byteSize(file.bytes) })
}
