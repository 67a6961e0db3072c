// First, as it names the layers of styles: one that is named earlier would lose to the reset.
import './styles/main.css'
import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { i18n } from './locales'
import { router } from './router'
import { applyAppearance } from './shell/appearance'
import { guardDrops } from './shell/drops'
import { nextTask } from './shell/pace'
import { usePerson } from './shell/person'
import { watchForNewVersion } from './shell/version'

/** In a few tasks: a slow phone paints between them, and hears the person. */
async function start(): Promise<void> {
  applyAppearance()
  guardDrops()
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
