/** The files of texts as they are written, for tests: an import would add them to the page. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** The texts that are loaded later, by the path of their file below `src`. */
export function readTextFiles(): Record<string, object> {
  const paths = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('en.json') && path !== 'locales/en.json')
  return Object.fromEntries(paths.map((path) => [path, JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as object]))
}
