/** The files of texts as they are written, for tests: imports give them parsed, and add them to the page. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Texts } from '../../scripts/texts'

const ROOT = join(import.meta.dirname, '..')

/** The texts of every page. */
export function readFirstTexts(): Texts {
  return read('locales/en.json')
}

/** The texts that are loaded later, by the path of their file below `src`. */
export function readLaterTexts(): Record<string, Texts> {
  const paths = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.en.json'))
  return Object.fromEntries(paths.map((path) => [path, read(path)]))
}

function read(path: string): Texts {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Texts
}
