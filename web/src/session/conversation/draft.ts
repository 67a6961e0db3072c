/** A conversation while events are folded into it. */
import type { JsonObject, Seq } from '@/wire/types'
import { isSetting, type CallEntry, type Conversation, type Entry, type ForkedWorkspace, type Note } from './conversation'

/** Where an event stands in the journal. */
export interface Place {
  seq: Seq
  at: string
}

/** An event as the steps of the fold read it: its first argument if it is a text, and its last if it is an object. */
export interface Told {
  place: Place
  text: string
  data: JsonObject
}

export type Step = (draft: Draft, told: Told) => void

/** One working copy per batch of events, so that folding a long history does not copy it per event. */
export class Draft {
  readonly state: Conversation
  private readonly indexOf = new Map<string, number>()

  constructor(before: Conversation) {
    this.state = { ...before, entries: [...before.entries], waiting: [...before.waiting] }
    this.index()
  }

  push(entry: Entry): void {
    // A retried turn may repeat its numbers; two entries must not share a key.
    const key = this.indexOf.has(entry.key) ? `${entry.key}.${entry.seq}` : entry.key
    this.indexOf.set(key, this.state.entries.length)
    const version = entry.kind === 'note' && isSetting(entry.note) ? null : this.state.version
    this.state.entries.push({ ...entry, key, ...(version ? { version } : {}) })
  }

  note(place: Place, note: Note): void {
    if (note.what === 'reset') this.state.version = null
    this.push({ kind: 'note', key: `n${place.seq}`, ...place, note })
  }

  /** The newest line of a fork says what its workspace is; where it is on an older page, that page is folded with this. */
  settleFork(workspace: ForkedWorkspace): void {
    const entry = this.state.entries.findLast((entry) => entry.kind === 'note' && entry.note.what === 'forked')
    if (entry?.kind === 'note' && entry.note.what === 'forked') this.replace({ ...entry, note: { ...entry.note, workspace } })
  }

  replace(entry: Entry): void {
    const at = this.indexOf.get(entry.key)
    if (at !== undefined) this.state.entries[at] = entry
  }

  remove(isGone: (entry: Entry) => boolean): void {
    this.state.entries = this.state.entries.filter((entry) => !isGone(entry))
    this.index()
  }

  callEntry(callId: string): CallEntry | undefined {
    const at = this.indexOf.get(callId)
    const entry = at === undefined ? undefined : this.state.entries[at]
    return entry?.kind === 'call' ? entry : undefined
  }

  private index(): void {
    this.indexOf.clear()
    this.state.entries.forEach((entry, at) => this.indexOf.set(entry.key, at))
  }
}
