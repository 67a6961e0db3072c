import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { readFirstTexts, readLaterTexts } from './testing'

/** Texts that are loaded with what says them, by the file that holds them. */
const en = readFirstTexts()
const laterFiles = readLaterTexts()
const laterTexts = Object.values(laterFiles)

/** Keys that the code puts together from a state, as `failure.${code}`. */
const COMPUTED =
  /^(details\.why|assistants\.access\.level|audit\.(family|verdicts|format|by|anchor)|dryRun\.(status|change|why|unseen|none|noResult)|compaction|effort|failure|decision|told|because|note|strip\.refused|search\.kind|keys\.(where|of)|panel\.tab|palette\.(group|theme)|budgets\.(level|each|of|group_each|group_pooled)|signIn\.(code|reason)|welcome\.name|notifications\.state|models\.defaultBy|settings\.(theme|density|send|reading)|people\.(role|means|state|sort)|tenants\.(state|sort)|apiKeys\.(days|scope|means)|directory\.(role|deletes|kind)|views\.(reach|permission)|roles\.right|rules\.(group|effect|scope|reach|origin|state|matching|other|form\.(fits|example|problem|approver))|providers\.(cacheTtls|compactions|kind|hint|source|scope|failedTo)|usage\.(by|column|part|purpose)|published\.kinds|packages\.(registry|state)|moreFields|servers\.(state|source|where|phase|effect|workspace|recognised|audience))\.|^(offers\.(resources|prompts)|packages\.(added|removed)|views\.(silent|left|flooded|grasped|ended))$/

function leaves(node: object, path = ''): string[] {
  return Object.entries(node).flatMap(([key, value]) =>
    typeof value === 'string' ? [path + key] : leaves(value as object, `${path}${key}.`),
  )
}

function files(): { file: string; text: string }[] {
  const root = join(import.meta.dirname, '..')
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(vue|ts)$/.test(file) && !file.includes('.test.'))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }))
}

const code = files()
  .map(({ text }) => text)
  .join('\n')
const used = new Set([...code.matchAll(/(?:\$t|\bt|\bte)\(\s*'([\w.-]+)'/g)].map((match) => match[1] ?? ''))

it('has a text for every key that is used', () => {
  const known = new Set([en, ...laterTexts].flatMap((texts) => leaves(texts)))
  expect([...used].filter((key) => !known.has(key))).toEqual([])
})

it('has no text of ours that nothing says', () => {
  const said = (key: string) => code.includes(`'${key}'`) || COMPUTED.test(key)
  const ours = [en, ...laterTexts].flatMap(Object.keys).filter((area) => !FOREIGN_AREAS.has(area))
  expect([en, ...laterTexts].flatMap((texts) => leaves(texts)).filter((key) => ours.includes(key.split('.')[0] ?? '') && !said(key))).toEqual([])
})

it('has the texts of a file loaded with it', () => {
  const first = new Set(leaves(en))
  const later = Object.entries(laterFiles).map(([path, texts]) => ({ path, keys: leaves(texts).filter((key) => !first.has(key)) }))
  const missing = files().flatMap(({ file, text }) =>
    later.flatMap(({ path, keys }) => {
      // As it is, or put together from a state.
      const isSaid = (key: string) => text.includes(`'${key}'`) || text.includes(`\`${key.slice(0, key.lastIndexOf('.'))}.\${`)
      const said = keys.find(isSaid)
      const imported = text.includes(`import '@/${path}'`) || (dirname(file) === dirname(path) && text.includes(`import './${basename(path)}'`))
      return said === undefined || imported ? [] : [`${file} says ${said} without ${path}`]
    }),
  )
  expect(missing).toEqual([])
})

/** Their keys are made of states in src/approval and src/ui. */
const FOREIGN_AREAS = new Set(['approval', 'glyph', 'call', 'tray', 'markdown'])
