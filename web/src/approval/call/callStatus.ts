/** Which drawing stands for which state of a call. */
import type { GlyphState } from '@/ui/StateGlyph.vue'
import type { CallStatus, CallView } from '@/wire/types'

const GLYPHS: Readonly<Record<CallStatus, GlyphState>> = {
  pending: 'waits',
  approved: 'approved',
  rejected: 'refused',
  executing: 'running',
  completed: 'done',
  failed: 'failed',
  cancelled: 'stopped',
  unknown: 'unknown',
}

/** The code of a command that ran to its end and says that it did not go well; null for everything else. */
export function exitCodeOf({ status, exitCode }: Pick<CallView, 'status' | 'exitCode'>): number | null {
  return status === 'completed' && exitCode !== undefined && exitCode !== 0 ? exitCode : null
}

export function glyphOf(status: CallStatus): GlyphState {
  return GLYPHS[status]
}
