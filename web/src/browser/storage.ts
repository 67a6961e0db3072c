/** Small things that a browser remembers. Storage may be refused or full; then they live until the tab closes. */
const fallback = new Map<string, string>()
const PREFIX = 'sepal.'

/** The `state` of the last confirmation at a provider that was begun in this browser: its answer is no sign-in. */
export const STEP_UP = 'stepUp'

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key)
  } catch {
    return fallback.get(key) ?? null
  }
}

export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key)
    else localStorage.setItem(PREFIX + key, value)
  } catch {
    if (value === null) fallback.delete(key)
    else fallback.set(key, value)
  }
}

/** At sign-out nothing that a person typed stays behind. */
export function forgetTyped(): void {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(`${PREFIX}draft.`) || key.startsWith(`${PREFIX}unsent.`)) localStorage.removeItem(key)
    }
  } catch {
    fallback.clear()
  }
}
