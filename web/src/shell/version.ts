/** A chunk that is gone means that a newer page is served. It is offered, never forced. */
import { ref } from 'vue'
import type { Router } from 'vue-router'

export const isNewVersionReady = ref(false)

export function watchForNewVersion(router: Router): void {
  addEventListener('vite:preloadError', (event) => {
    event.preventDefault()
    isNewVersionReady.value = true
  })
  router.onError(() => {
    isNewVersionReady.value = true
  })
}
