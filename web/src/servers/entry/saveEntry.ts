/** Saves a changed entry: first the entry, then what was typed for its secrets, so that nothing goes to the old place. */
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { ServerConfig, ServerItem, ServerPatch } from '@/wire/restTypes'
import { givenAgain } from './entryPatch'
import { conflictsOf, type Conflict } from './mergeConflicts'

/** Where it stopped. What was done until then is in `Saved`. */
export type Step = 'entry' | 'secrets'

export interface Saved {
  /** The entry as the server has it now; `null` while it is the old one. */
  item: ServerItem | null
  /** Secrets that had to go before the change, and whose new value is not stored yet. */
  removed: string[]
  /** Secrets that were stored. */
  stored: string[]
}

export class SaveFailed extends Error {
  constructor(
    readonly step: Step,
    readonly saved: Saved,
    readonly reason: unknown,
  ) {
    super('not saved')
  }
}

/** Somebody else changed what has to be looked at first: nothing was sent. */
export class EditConflict extends Error {
  constructor(
    readonly item: ServerItem,
    readonly conflicts: Conflict[],
  ) {
    super('changed meanwhile')
  }
}

export interface Change {
  /** The entry that the change was made of. */
  base: ServerConfig
  patch: ServerPatch
  typed: Record<string, string>
  leaving: string[]
}

/** Rejects with `SaveFailed` only. */
export async function saveEntry(name: string, { base, patch, typed, leaving }: Change): Promise<Saved> {
  const saved: Saved = { item: null, removed: [], stored: [] }
  let step: Step = 'entry'
  try {
    await look()
    if (Object.keys(patch).length > 0) saved.item = await change()
    step = 'secrets'
    for (const [secret, value] of Object.entries(typed)) {
      await rest.setServerSecret(name, secret, value)
      saved.stored.push(secret)
      saved.removed = saved.removed.filter((other) => other !== secret)
    }
    return saved
  } catch (error) {
    throw new SaveFailed(step, saved, error)
  }

  /** The server takes whatever comes last. What comes between this look and the change is still told afterwards. */
  async function look() {
    const now = await rest.server(name)
    // Who may no longer see it hears that from the change itself.
    const found = now.config ? conflictsOf(base, patch, now.config) : []
    if (found.length > 0) throw new EditConflict(now, found)
  }

  /** A refusal that names nothing but secrets is about values that go along: those that came again take their place. */
  async function change(): Promise<ServerItem> {
    try {
      return await rest.changeServer(name, patch)
    } catch (error) {
      const inTheWay = error instanceof RequestError ? givenAgain(error.fields, typed, leaving) : null
      if (!inTheWay) throw error
      for (const secret of inTheWay) {
        await rest.deleteServerSecret(name, secret)
        saved.removed.push(secret)
      }
      return rest.changeServer(name, patch)
    }
  }
}
