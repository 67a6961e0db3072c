import { expect, it } from 'vitest'
import { freeId, PRESETS } from './presets'

it('proposes an id that nobody has', () => {
  expect(freeId('openai', [])).toBe('openai')
  expect(freeId('openai', ['openai', 'openai-2'])).toBe('openai-3')
})

it('leaves room for an address that nobody here knows', () => {
  const other = PRESETS.find((preset) => preset.label === null)
  expect(other).toMatchObject({ kind: 'openai-compatible', needsKey: false })
  expect(other?.baseUrl).toBeUndefined()
})

it('names every program once, and only ids that the server takes', () => {
  const ids = PRESETS.map((preset) => preset.id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^[a-z0-9-]{1,64}$/)
})
