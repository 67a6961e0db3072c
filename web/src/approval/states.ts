/** Which drawing stands for which state of a call. */
import type { CallStatus } from '@/wire/types'
import type { GlyphState } from '../glyph/StateGlyph.vue'

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

export function glyphOf(status: CallStatus): GlyphState {
  return GLYPHS[status]
}
