import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ui from '@nuxt/ui/vite'
import vue from '@vitejs/plugin-vue'
import { defineConfig, type Plugin } from 'vitest/config'
import { parseTexts, type Texts } from './scripts/texts.ts'

/** The two faces of the first paint; the bold ones may come a moment later. */
const PRELOADED_FONT = /atkinson-hyperlegible-(next|mono)-latin-400-normal.*\.woff2$/

/** What every page needs. */
const BASE = /vite\/preload-helper|clients\/typescript\/src\/|node_modules\/(@vue|vue|vue-router|pinia|vue-i18n|@intlify|intl-messageformat|@formatjs)\/|web\/src\/(styles|locales|browser\/(?!inputGuard|printing)|stores|wire\/(base|json|request|rest)|ui\/(?!LazyOverlay|ChoiceGroup|StateGlyph|TextField)|rail\/(rail\.ts|WaitingBadge)|shell\/tabTitle)/
/** What a session needs before its first word can be read; not what is loaded once somebody searches or edits. */
const SESSION = /web\/src\/(session\/(?!.*\/(FindBar|EditMessage)\.)|pages\/SessionPage|shell\/(AppFrame|PageHead|StatusBar)|rail\/(SessionRail|RailItem|RailButton)|ui\/LazyOverlay)|node_modules\/(socket\.io-client|engine\.io-client|socket\.io-parser)\//

/** Font files have hashed names, so their preload links can only be written after bundling. */
function preloadFonts(): Plugin {
  return {
    name: 'sepal:preload-fonts',
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle }) =>
        Object.keys(bundle ?? {})
          .filter((file) => PRELOADED_FONT.test(file))
          .map((file) => ({
            tag: 'link',
            attrs: { rel: 'preload', as: 'font', type: 'font/woff2', href: `./${file}`, crossorigin: '' },
            injectTo: 'head' as const,
          })),
    },
  }
}

/** What a session loads right after the base, by the source that each comes from. */
const BESIDE = /^(session|parser)$/

/**
 * Leaves the start of the program to public/start.js, which paints first, and tells it what a session is made of:
 * those names are known after bundling only.
 */
function startAfterPaint(): Plugin {
  return {
    name: 'sepal:start-after-paint',
    transformIndexHtml: {
      order: 'post',
      handler: (html, { bundle }) => {
        if (!bundle) return html
        const files = Object.values(bundle).flatMap((file) =>
          file.type === 'chunk' && BESIDE.test(file.name) ? [file.fileName, ...(file.viteMetadata?.importedCss ?? [])] : [],
        )
        const program = /\s*<script type="module" crossorigin src="([^"]+)"><\/script>/
        const [script, href] = program.exec(html) ?? []
        if (!script || files.length === 0) throw new Error('index.html has no program, or the build no session')
        const session = files.map((file) => `./${file}`).join(' ')
        const link = `<link rel="modulepreload" crossorigin id="program" href="${href}" data-session="${session}">`
        // What the first paint needs goes before what comes after it.
        return html
          .replace(script, '')
          .replace('<script src="./start.js">', `${link}\n    $&`)
          .replaceAll('<link rel="modulepreload"', '$& fetchpriority="low"')
      },
    },
  }
}

/** The texts of every page, and those that are loaded with the component that shows them. */
const TEXTS = /\/(?:locales\/en|[\w-]+\.en)\.json$/

/**
 * Parses the ICU messages of texts. `import './texts.en.json'` adds the texts of that file to those of the page, with
 * the chunk that imports it.
 */
function texts(): Plugin {
  return {
    name: 'sepal:texts',
    transform(_code, id) {
      if (!TEXTS.test(id)) return null
      const parsed = JSON.stringify(parseTexts(JSON.parse(readFileSync(id, 'utf8')) as Texts))
      if (id.endsWith('/locales/en.json')) return { code: `export default ${parsed}`, map: null }
      return { code: `import { addTexts } from '@/locales'\naddTexts(${parsed})`, map: null, moduleSideEffects: true }
    },
  }
}

export default defineConfig({
  // Everything is addressed relative to `<base href>`, so one build works below any prefix.
  base: './',
  publicDir: '../public',
  plugins: [
    vue(),
    ui({
      components: false,
      autoImport: false,
      dts: false,
      colorMode: false,
      // Besides what is named in the sources (`UButton`): what ui/LazyOverlay.ts loads by its path.
      experimental: { componentDetection: ['DropdownMenu', 'Popover'] },
      theme: { colors: ['primary', 'secondary', 'success', 'info', 'warning', 'error'], transitions: false },
      icon: { clientBundle: { scan: { globInclude: ['src/**/*.{vue,ts}'], globExclude: ['node_modules'] } } },
      ui: {
        button: { slots: { base: 'cursor-pointer no-underline' } },
        // Green means that something was opened, not that a field is being written in.
        input: { defaultVariants: { color: 'neutral' } },
        textarea: { defaultVariants: { color: 'neutral' } },
      },
    }),
    texts(),
    preloadFonts(),
    startAfterPaint(),
  ],
  resolve: {
    alias: {
      // Ours draws what is in the bundle and nothing else.
      '@iconify/vue': fileURLToPath(new URL('./src/ui/iconify.ts', import.meta.url)),
      '@': fileURLToPath(new URL('./src', import.meta.url)),
      'sepal-client': fileURLToPath(new URL('../clients/typescript/src/index.ts', import.meta.url)),
      // Messages are parsed by scripts/texts.ts: neither the parser of FormatJS nor vue-i18n's compiler is shipped.
      ...(process.env['VITEST'] ? {} : { '@formatjs/icu-messageformat-parser': '@formatjs/icu-messageformat-parser/no-parser.js' }),
      'vue-i18n': 'vue-i18n/dist/vue-i18n.runtime.esm-bundler.js',
    },
  },
  define: {
    __VUE_I18N_FULL_INSTALL__: 'false',
    __VUE_I18N_LEGACY_API__: 'false',
    __INTLIFY_PROD_DEVTOOLS__: 'false',
    __INTLIFY_DROP_MESSAGE_COMPILER__: 'true',
    __VUE_OPTIONS_API__: 'true',
  },
  build: {
    outDir: 'dist',
    target: 'es2022',
    // The page's CSP has no data: source.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // A phone pays each request with a round trip: the session and its frame come as one file beside the base.
        codeSplitting: {
          groups: [
            { name: 'base', test: BASE, priority: 2 },
            { name: 'session', test: SESSION, priority: 1 },
          ],
        },
      },
    },
    // Read by scripts/notices.js and scripts/budget.js, which removes both.
    license: { fileName: '.vite/licenses.json' },
    manifest: true,
  },
  server: {
    // The client lies beside the page.
    fs: { allow: ['.', '../public', '../clients/typescript/src'] },
    proxy: {
      '/api': 'http://127.0.0.1:3000',
      '/socket.io': { target: 'ws://127.0.0.1:3000', ws: true },
    },
  },
  test: {
    environment: 'happy-dom',
    // A process for each file would spend most of its time on loading Vue (src/testing.ts).
    isolate: false,
    setupFiles: ['src/testing.ts'],
    include: ['src/**/*.test.ts', 'scripts/**/*.test.{ts,js}'],
  },
})
