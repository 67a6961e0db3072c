/** Saves a changed entry: first the entry, then what was typed for its secrets, so that nothing goes to the old place. */
import { rest, RequestError, type ServerConfig, type ServerItem, type ServerPatch } from '@/wire/rest'
import { givenAgain } from './change'
import { clashes, type Clash } from './meanwhile'

/** Where it stopped. What was done until then is in `Kept`. */
export type Step = 'entry' | 'secrets'

export interface Kept {
  /** The entry as the server has it now; `null` while it is the old one. */
  item: ServerItem | null
  /** Secrets that had to go before the change, and whose new value is not stored yet. */
  removed: string[]
  /** Secrets that were stored. */
  stored: string[]
}

export class NotKept extends Error {
  constructor(
    readonly step: Step,
    readonly kept: Kept,
    readonly reason: unknown,
  ) {
    super('not kept')
  }
}

/** Somebody else changed what has to be looked at first: nothing was sent. */
export class Meanwhile extends Error {
  constructor(
    readonly item: ServerItem,
    readonly clashes: Clash[],
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

/** Rejects with `NotKept` only. */
export async function keepEntry(name: string, { base, patch, typed, leaving }: Change): Promise<Kept> {
  const kept: Kept = { item: null, removed: [], stored: [] }
  let step: Step = 'entry'
  try {
    await look()
    if (Object.keys(patch).length > 0) kept.item = await change()
    step = 'secrets'
    for (const [secret, value] of Object.entries(typed)) {
      await rest.setServerSecret(name, secret, value)
      kept.stored.push(secret)
      kept.removed = kept.removed.filter((other) => other !== secret)
    }
    return kept
  } catch (error) {
    throw new NotKept(step, kept, error)
  }

  /** The server takes whatever comes last. What comes between this look and the change is still told afterwards. */
  async function look() {
    const now = await rest.server(name)
    // Who may no longer see it hears that from the change itself.
    const found = now.config ? clashes(base, patch, now.config) : []
    if (found.length > 0) throw new Meanwhile(now, found)
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
        kept.removed.push(secret)
      }
      return rest.changeServer(name, patch)
    }
  }
}
