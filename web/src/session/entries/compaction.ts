/** What is said of a context that was compacted. */
import { i18n } from '@/locales'
import { count, money } from '@/locales/format'
import type { Entry, Note } from '@/session/conversation/conversation'

type Compacted = Extract<Note, { what: 'compacted' }>

/** A line of what left. */
export interface LeftLine {
  key: string
  by: 'person' | 'model'
  text: string
}

const CHARACTERS = 160
/** How the strategy is called by which a vendor compacts. */
const BY_VENDOR = 'vendor'

export function compactedWords(note: Compacted): string {
  const sizes = { before: count(note.before), after: count(note.after) }
  const { t } = i18n.global
  if (note.left && note.left.messages > 0) return t('note.left', { ...sizes, n: note.left.messages, strategy: note.strategy })
  if (note.strategy === BY_VENDOR) return byVendorWords(note)
  if (note.strategy === 'shorten-results') return t('note.shortened', sizes)
  if (note.strategy === 'lower-limit') return t('note.lowerLimit', sizes)
  if (note.strategy === 'drop-reasoning') return t('note.unthinking', sizes)
  return t('note.compacted', { ...sizes, strategy: note.strategy })
}

/** What a vendor compacted by itself; some of them tell neither sizes nor what stands for it. */
function byVendorWords(note: Compacted): string {
  const { t } = i18n.global
  const model = note.summarisedBy ?? ''
  const said = note.before > 0 ? t('note.byVendor', { model, before: count(note.before), after: count(note.after) }) : t('note.byVendorUntold', { model })
  const cost = note.cost === null ? '' : t('note.byVendorCost', { cost: money(note.cost) })
  const sealed = note.summary === null ? t('note.byVendorSealed') : ''
  return [said, cost, sealed].filter(Boolean).join(' ')
}

/** What a compaction left out, as far as it stands in the page. */
export function leftLines(note: Compacted, seq: number, entries: readonly Entry[]): LeftLine[] {
  const from = note.left?.fromSeq ?? null
  if (from === null) return []
  const to = note.left?.toSeq ?? seq
  return entries.flatMap((entry) => {
    if (entry.seq < from || entry.seq >= to || (entry.kind !== 'user' && entry.kind !== 'said')) return []
    const text = entry.text.trim()
    const short = text.length > CHARACTERS ? `${text.slice(0, CHARACTERS)}…` : text
    return short ? [{ key: entry.key, by: entry.kind === 'user' ? ('person' as const) : ('model' as const), text: short }] : []
  })
}
