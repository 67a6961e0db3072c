// @vitest-environment node
/** How the page is built: folders that stand on each other without circles. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = import.meta.dirname
/** Tests, and what only they use, are not part of the page. */
const IS_TEST = /(^|\/)testing\.ts$|\.test\.ts$|\.d\.ts$/
/** Every way to name another module: `from '…'`, `import '…'` and `import('…')`. */
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'((?:\.{1,2}|@)\/[^']+|\.)'/g

const files = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => /\.(ts|vue)$/.test(file))
const sources = files.filter((file) => !IS_TEST.test(file))

/** The file that an import means; null for what is neither TypeScript nor Vue. */
function resolve(from: string, specifier: string): string | null {
  const path = specifier.startsWith('@/') ? specifier.slice(2) : normalize(join(dirname(from), specifier)).replaceAll('\\', '/')
  const found = [path, `${path}.ts`, `${path}/index.ts`].find((candidate) => files.includes(candidate))
  if (found === undefined && !/\.(css|json)$/.test(path)) throw new Error(`\`${from}\` imports \`${specifier}\`, which this test cannot find`)
  return found ?? null
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8')
  return [...text.matchAll(IMPORT)].map(([, specifier = '']) => resolve(file, specifier)).filter((found) => found !== null)
}

/** Which folder imports which, each with an example. */
function folderGraph(): Map<string, Map<string, string>> {
  const graph = new Map<string, Map<string, string>>()
  for (const file of sources) {
    for (const target of importsOf(file)) {
      const [from, to] = [dirname(file), dirname(target)]
      if (from === to) continue
      graph.set(from, (graph.get(from) ?? new Map()).set(to, `${file} imports ${target}`))
    }
  }
  return graph
}

/** The first circle that can be reached from a folder, as the imports that make it. */
function circleFrom(folder: string, graph: Map<string, Map<string, string>>, path: string[], done: Set<string>): string[] | null {
  if (done.has(folder)) return null
  if (path.includes(folder)) {
    const round = [...path.slice(path.indexOf(folder)), folder]
    return round.slice(1).map((to, at) => graph.get(round[at] ?? '')?.get(to) ?? '')
  }
  for (const next of graph.get(folder)?.keys() ?? []) {
    const circle = circleFrom(next, graph, [...path, folder], done)
    if (circle) return circle
  }
  done.add(folder)
  return null
}

it('reads every import', () => {
  expect(importsOf('router.ts')).toContain('pages/SessionPage.vue')
  expect(importsOf('main.ts')).toContain('locales/index.ts')
  expect(importsOf('session/store/session.ts')).toContain('session/store/state.ts')
})

it('has no circle of folders', () => {
  const graph = folderGraph()
  const done = new Set<string>()
  for (const folder of graph.keys()) expect(circleFrom(folder, graph, [], done)).toBe(null)
})

it('finds a circle where there is one', () => {
  const graph = new Map([['a', new Map([['b', 'a to b']])], ['b', new Map([['c', 'b to c']])], ['c', new Map([['b', 'c to b']])]])
  expect(circleFrom('a', graph, [], new Set())).toEqual(['b to c', 'c to b'])
})
