/**
 * Fails the build when a page needs more bytes than the budgets below allow: every chunk and style that a route
 * needs before it is usable, as brotli, and the fonts as they are.
 */
import { readFileSync, readdirSync, rmSync, statSync, existsSync } from 'node:fs'
import { join } from 'node:path'

const OUT = new URL('../dist/', import.meta.url).pathname
const KB = 1000
const BUDGETS = [
  { name: 'sign-in', entries: ['index.html', 'src/pages/SignInPage.vue'], limit: 130 * KB },
  {
    name: 'session',
    entries: ['index.html', 'session', 'src/markdown/parser.ts'],
    limit: 200 * KB,
  },
]
const FONT_LIMIT = 52 * KB
/** What a session loads besides when the first block of code is there: the highlighter, a worker. */
const WORKER = /^worker-[\w-]+\.js$/
const WORKER_LIMIT = 48 * KB
/** What an answer loads besides when there is a formula in it: KaTeX, and a face where the system has none. */
const FORMULA_LIMIT = 90 * KB
const FORMULA_FONT = /^noto-sans-math-.*\.woff2$/
const FORMULA_FONT_LIMIT = 280 * KB
/** What a sealed frame loads when there is a diagram in it. */
const DIAGRAM = /^mermaid\.tiny-[\w-]+\.js$/
const DIAGRAM_LIMIT = 600 * KB

const manifest = JSON.parse(readFileSync(join(OUT, '.vite/manifest.json'), 'utf8'))

function filesOf(key, seen = new Set(), files = new Set()) {
  if (seen.has(key)) return files
  seen.add(key)
  // What is named in vite.config.ts has a hash in its key.
  const chunk = manifest[key] ?? Object.values(manifest).find(({ name, file }) => name === key && file.endsWith('.js'))
  if (!chunk) throw new Error(`the build has no \`${key}\``)
  files.add(chunk.file)
  for (const style of chunk.css ?? []) files.add(style)
  for (const imported of chunk.imports ?? []) filesOf(imported, seen, files)
  return files
}

function bytesOf(file) {
  const path = join(OUT, file)
  return statSync(existsSync(`${path}.br`) ? `${path}.br` : path).size
}

function report(name, bytes, limit) {
  console.log(`${name.padEnd(8)} ${(bytes / KB).toFixed(1).padStart(6)} kB of ${limit / KB} kB`)
  return bytes <= limit
}

/** The one asset of that name. */
function only(name) {
  const found = readdirSync(join(OUT, 'assets')).filter((file) => name.test(file))
  if (found.length !== 1) throw new Error(`the build has ${found.length} files like ${name} instead of one`)
  return bytesOf(`assets/${found[0]}`)
}

const results = BUDGETS.map(({ name, entries, limit }) => {
  const files = new Set(entries.flatMap((entry) => [...filesOf(entry)]))
  return report(name, [...files].reduce((sum, file) => sum + bytesOf(file), 0), limit)
})
const assets = readdirSync(join(OUT, 'assets'))
// A worker is in no manifest, so it is found by its name.
const workers = assets.filter((file) => WORKER.test(file))
if (workers.length !== 1) throw new Error(`the build has ${workers.length} workers instead of one`)
results.push(report('code', bytesOf(`assets/${workers[0]}`), WORKER_LIMIT))
const formulas = [...filesOf('src/markdown/typeset.ts')].filter((file) => !BUDGETS.some(({ entries }) => entries.some((entry) => filesOf(entry).has(file))))
results.push(report('formula', formulas.reduce((sum, file) => sum + bytesOf(file), 0), FORMULA_LIMIT))
results.push(report('its face', only(FORMULA_FONT), FORMULA_FONT_LIMIT))
results.push(report('diagram', only(DIAGRAM), DIAGRAM_LIMIT))
const fonts = assets.filter((file) => file.endsWith('.woff2') && !FORMULA_FONT.test(file))
results.push(report('fonts', fonts.reduce((sum, file) => sum + statSync(join(OUT, 'assets', file)).size, 0), FONT_LIMIT))

// What Vite says of the build is for these scripts; it is not served.
rmSync(join(OUT, '.vite'), { recursive: true })
if (results.includes(false)) {
  console.error('The page is heavier than its budget.')
  process.exit(1)
}
