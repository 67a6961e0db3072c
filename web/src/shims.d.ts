declare module '@nuxt/ui/runtime/vue/plugins/icons.js' {
  import type { Plugin } from 'vue'
  const plugin: Plugin
  export default plugin
}
