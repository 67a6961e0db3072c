import icons from '@nuxt/ui/runtime/vue/plugins/icons.js'
import { addAPIProvider } from '@iconify/vue'
import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { i18n } from './locales'
import { router } from './router'
import { applyAppearance } from './shell/appearance'
import { guardDrops } from './shell/drops'
import { usePerson } from './shell/person'
import { watchForNewVersion } from './shell/version'
import './styles/main.css'

// Icons come from the bundle only: no request ever leaves this origin.
addAPIProvider('', { resources: [] })
applyAppearance()
guardDrops()
const pinia = createPinia()
watchForNewVersion(router, () => usePerson(pinia).identify())
createApp(App).use(pinia).use(i18n).use(router).use(icons).mount('#app')
