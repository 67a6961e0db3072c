import type { Conversation, Entry, SaidEntry } from './conversation'

/**
 * Puts back what only a page that watched could know, after the stored events were folded anew: reasoning, and the
 * text of an answer that broke off. Entries are matched by their event, because a key made of a turn that began on
 * an older page is another one once that page is here.
 */
export function retainStreamed(before: Conversation, after: Conversation): Conversation {
  const entries = [...after.entries]
  for (const said of before.entries) {
    if (said.kind !== 'said' || !(said.reasoning || said.text)) continue
    const at = entries.findIndex((entry) => entry.kind === 'said' && entry.seq === said.seq)
    if (at < 0) insert(entries, said)
    else entries[at] = watched(entries[at] as SaidEntry, said)
  }
  return { ...after, entries }
}

function watched(stored: SaidEntry, said: SaidEntry): SaidEntry {
  if (stored.reasoning || !said.reasoning) return stored
  return { ...stored, reasoning: said.reasoning, reasoningMs: said.reasoningMs }
}

/** Before whatever else its event made. A message that waited has an older number where it was read. */
function insert(entries: Entry[], said: SaidEntry): void {
  const at = entries.findIndex(({ seq }) => seq >= said.seq)
  const isTaken = entries.some(({ key }) => key === said.key)
  const entry = isTaken ? { ...said, key: `${said.key}.${said.seq}` } : said
  entries.splice(at < 0 ? entries.length : at, 0, entry)
}
