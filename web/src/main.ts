import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { i18n } from './locales'
import { warmUp } from './locales/format'
import { router } from './router'
import { applyAppearance } from './shell/appearance'
import { guardDrops } from './shell/drops'
import { nextTask } from './shell/pace'
import { usePerson } from './shell/person'
import { watchForNewVersion } from './shell/version'
import './styles/main.css'

applyAppearance()
guardDrops()
const pinia = createPinia()
watchForNewVersion(router, () => usePerson(pinia).identify())
const app = createApp(App).use(pinia).use(i18n).use(router)
// The first format of a page takes as long as a third of its drawing, and the page waits for the network just now.
void nextTask().then(warmUp)
// What index.html shows stays until there is a page, or until there is none.
const mount = () => void nextTask().then(() => app.mount('#app'))
router.isReady().then(mount, mount)
