/** Waiting for a condition, with a deadline that says what was waited for. */
import { setTimeout as pause } from 'node:timers/promises'

const POLL_MS = 25
export const DEADLINE_MS = 30_000

/** Asks `ask` until its answer is truthy, and gives that answer; errors count as "not yet". */
export async function until(what, ask, within = DEADLINE_MS) {
  const end = Date.now() + within
  let last
  for (;;) {
    try {
      const answer = await ask()
      if (answer) return answer
      last = answer
    } catch (error) {
      last = error
    }
    if (Date.now() > end) {
      throw new Error(`not within ${within} ms: ${what} (last: ${last instanceof Error ? last.message : JSON.stringify(last)})`)
    }
    await pause(POLL_MS)
  }
}

/** A promise with its two handles, for events that a test waits for. */
export function deferred() {
  let resolve, reject
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]))
  return { promise, resolve, reject }
}
