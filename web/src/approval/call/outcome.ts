/** What became of a call that is decided, in words. */
import { t } from '@/locales'
import { visibleText } from '@/text/hiddenCharacters'
import type { QueueCall } from '@/wire/types'

/** `waiting`: how many calls it still waits for. */
export function outcomeOf(call: QueueCall, me: string | undefined, waiting: number): string {
  const isMe = call.decidedBy !== undefined && call.decidedBy.id === me
  const name = visibleText(call.decidedBy?.name ?? '', { oneLine: true })
  const who = isMe ? 'me' : 'other'
  if (call.status === 'approved') return t('approval.outcome.approved', { who, name, waiting })
  if (call.status !== 'rejected') return t('approval.outcome.decided', { name })
  const reason = visibleText(call.reason ?? '', { oneLine: true })
  return reason === '' ? t('approval.outcome.rejected', { who, name }) : t('approval.outcome.rejectedBecause', { who, name, reason })
}
