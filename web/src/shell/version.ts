/**
 * A newer page is served when a chunk is gone, or when the server says another version than before.
 * It is offered, never forced: what is typed and read stays until its reader decides.
 */
import { ref } from 'vue'
import type { Router } from 'vue-router'

export const isNewVersionReady = ref(false)

/** What the server said first, which served this page a moment before. */
let own: string | null = null

/** Takes note of the version that a server says at each sign-in and `system:ready`. */
export function noteVersion(said: string): void {
  own ??= said
  if (said !== own) isNewVersionReady.value = true
}

export function watchForNewVersion(router: Router): void {
  addEventListener('vite:preloadError', (event) => {
    event.preventDefault()
    isNewVersionReady.value = true
  })
  router.onError(() => {
    isNewVersionReady.value = true
  })
}
