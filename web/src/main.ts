import icons from '@nuxt/ui/runtime/vue/plugins/icons.js'
import { addAPIProvider } from '@iconify/vue'
import { createPinia } from 'pinia'
import { createApp } from 'vue'
import App from './App.vue'
import { i18n } from './locales'
import { router } from './router'
import { applyAppearance } from './shell/appearance'
import { watchForNewVersion } from './shell/version'
import './styles/main.css'

// Icons come from the bundle only: no request ever leaves this origin.
addAPIProvider('', { resources: [] })
applyAppearance()
watchForNewVersion(router)
createApp(App).use(createPinia()).use(i18n).use(router).use(icons).mount('#app')
