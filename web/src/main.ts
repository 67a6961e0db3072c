// First, as it names the layers of styles: one that is named earlier would lose to the reset.
import './styles/main.css'
import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { keepComposingKeys } from './browser/composing'
import { guardDrops } from './browser/fileDrop'
import { nextTask } from './browser/scheduling'
import { i18n } from './locales'
import { router } from './router'
import { applyAppearance } from './stores/appearance'
import { usePerson } from './stores/person'
import { watchForNewVersion } from './stores/version'

/** In a few tasks: a slow phone paints between them, and hears the person. */
async function start(): Promise<void> {
  applyAppearance()
  guardDrops()
  keepComposingKeys()
  await nextTask()
  const pinia = createPinia()
  watchForNewVersion(router, () => usePerson(pinia).identify())
  const app = createApp(App).use(pinia).use(i18n).use(router)
  // What index.html shows stays until there is a page, or until there is none.
  await router.isReady().catch(() => {})
  await nextTask()
  app.mount('#app')
}

void start()
