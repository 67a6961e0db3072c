/**
 * Writes third-party.txt: whose work the page and the programs contain, and under which terms. The licences of
 * most of it ask that their text goes with every copy; the page is one, so it offers the file itself.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const WEB = new URL('../', import.meta.url).pathname
const OUT = join(WEB, 'dist')

const read = (...path) => readFileSync(join(WEB, ...path), 'utf8').trim()

/** A package as it is installed, in the words of Vite's list. */
function installed(name) {
  const folder = join('node_modules', name)
  const { version, license } = JSON.parse(read(folder, 'package.json'))
  const file = readdirSync(join(WEB, folder)).find((entry) => /^(licen[cs]e|copying)/i.test(entry))
  return { name, version, identifier: license, text: file && read(folder, file) }
}

// Vite lists the modules of the page; it sees neither styles, nor fonts, nor what a worker imports.
const packages = JSON.parse(read('dist/.vite/licenses.json'))
const seen = new Set(packages.map(({ name }) => name))
for (const name of Object.keys(JSON.parse(read('package.json')).dependencies)) {
  if (!seen.has(name)) packages.push(installed(name))
}
// Icons are drawn into the bundle; their package comes without its licence.
packages.push({ ...installed('@iconify-json/lucide'), text: read('notices/lucide.txt') })

// One file that was put together by its makers; whose work is in it they do not say.
const diagrams = packages.find(({ name }) => name === '@mermaid-js/tiny')
diagrams.text = `${diagrams.text}\n\n${read('notices/diagrams.txt')}`

const silent = packages.filter(({ text }) => !text).map(({ name }) => name)
if (silent.length > 0) {
  console.error(`No licence text comes with ${silent.join(', ')}: put it into web/notices, and name it in scripts/notices.js.`)
  process.exit(1)
}

const RULE = '-'.repeat(80)
const byName = (one, other) => (one.name < other.name ? -1 : 1)
const sections = packages.sort(byName).map(({ name, version, identifier, text }) => `${name} ${version} (${identifier})\n\n${text}`)
const page = `The page of Sepal contains ${sections.length} packages of other people.`
writeFileSync(join(OUT, 'third-party.txt'), `${[page, ...sections, read('notices/programs.txt')].join(`\n\n${RULE}\n`)}\n`)
