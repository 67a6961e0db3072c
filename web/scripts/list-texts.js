/**
 * Lists every text of the page, to be read one after the other: `npm run texts`, or `npm run texts -- WORD` for those
 * that have the word in their key or text.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('../src/', import.meta.url))
const wanted = process.argv.slice(2).join(' ').toLowerCase()

function* textsOf(node, path = '') {
  for (const [key, value] of Object.entries(node)) {
    if (typeof value === 'string') yield [path + key, value]
    else yield* textsOf(value, `${path}${key}.`)
  }
}

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((file) => /(?:^|\.|\/)en\.json$/.test(file))
for (const file of files.sort()) {
  const texts = [...textsOf(JSON.parse(readFileSync(join(SOURCE, file), 'utf8')))].filter((text) => text.join(' ').toLowerCase().includes(wanted))
  if (texts.length === 0) continue
  console.log(`\n# ${relative(SOURCE, join(SOURCE, file))}`)
  for (const [key, text] of texts) console.log(`${key}\n    ${text}`)
}
