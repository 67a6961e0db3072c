/** What the line of a fork says: where it is from, and what is in its workspace. */
import { i18n } from '@/locales'
import { byteSize, dateTime } from '@/locales/format'
import type { Note } from '@/session/conversation/conversation'

const { t } = i18n.global

/** `copiedBytes`: how far the copy is, as long as somebody tells. */
export function forkedWords(note: Extract<Note, { what: 'forked' }>, copiedBytes: number | null): string {
  return `${t(note.fromSeq === 0 ? 'note.forkedAnew' : 'note.forked')} ${workspaceWords(note.workspace, copiedBytes)}`
}

function workspaceWords(workspace: Extract<Note, { what: 'forked' }>['workspace'], copiedBytes: number | null): string {
  switch (workspace.is) {
    case 'copied':
      return workspace.bytes === null
        ? t('note.files.copiedOnce', { at: dateTime(workspace.at) })
        : t('note.files.copied', { at: dateTime(workspace.at), size: byteSize(workspace.bytes) })
    case 'copying':
      return copiedBytes === null ? t('note.files.copying') : t('note.files.copyingOf', { size: byteSize(copiedBytes) })
    case 'empty':
      return t('note.files.empty', { why: workspace.why })
    default:
      return t(`note.files.${workspace.is}`)
  }
}
