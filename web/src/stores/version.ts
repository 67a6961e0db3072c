/**
 * A newer page is served when the server says another version than before. A chunk that cannot be loaded may be gone
 * for that, or only out of reach, so the server is asked. The newer page is offered, never forced: what is typed and read stays until its reader decides.
 */
import { ref } from 'vue'
import type { Router } from 'vue-router'

export const isNewVersionReady = ref(false)
/** A part of the page could not be loaded though the server answers, with the version of this page. */
export const isPartMissing = ref(false)

/** What the server said first, which served this page a moment before. */
let own: string | null = null

/** Takes note of the version that a server says at each sign-in and `system:ready`. */
export function noteVersion(said: string): void {
  own ??= said
  if (said !== own) isNewVersionReady.value = true
}

/** `askVersion` notes what the server says, and rejects when it does not answer. */
export function watchForNewVersion(router: Router, askVersion: () => Promise<void>): void {
  let isAsking = false

  async function find(): Promise<void> {
    if (isAsking) return
    isAsking = true
    try {
      await askVersion()
      isPartMissing.value = !isNewVersionReady.value
    } catch {
      // Out of reach, which the strip says by itself.
    }
    isAsking = false
  }

  addEventListener('vite:preloadError', (event) => {
    event.preventDefault()
    void find()
  })
  router.onError(() => void find())
  router.afterEach((_to, _from, failure) => {
    if (!failure) isPartMissing.value = false
  })
}
