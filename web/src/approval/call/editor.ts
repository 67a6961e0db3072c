/** Who changed the arguments of a call, in words. */
import { t } from '@/locales'
import { visibleText } from '@/text/hiddenCharacters'
import type { Person } from '@/wire/types'

/** "you", the name of somebody else, or "somebody" where nobody knows. */
export function editorWords(editor: Person | undefined, me: string | undefined): string {
  if (editor === undefined) return t('approval.editor', { who: 'nobody', name: '' })
  return t('approval.editor', { who: editor.id === me ? 'me' : 'other', name: visibleText(editor.name, { oneLine: true }) })
}

/** Whether somebody else changed them than whoever decided. */
export function isOther(editor: Person | undefined, decider: Person): boolean {
  return editor !== undefined && editor.id !== decider.id
}
