import { describe, expect, it } from 'vitest'
import { i18n } from '@/locales'
import { blankOf, freeId, presetOfKey, PRESETS } from './presets'
import { pricesText, readPrices, readWindows, windowsText } from './modelLists'
import './texts.en.json'

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

it('says of every provider with keys where they are made, and of every other address what it is', () => {
  for (const { id, label, needsKey, keysAt, baseUrl, kind, hasHint } of PRESETS) {
    if (needsKey) expect(keysAt, id).toMatch(/^https:/)
    if (kind === 'openai-compatible' && label !== null) expect(baseUrl, id).toMatch(/^https?:/)
    expect(i18n.global.te(`providers.hint.${id}`), id).toBe(hasHint === true)
    if (blankOf(baseUrl ?? '') !== null) expect(hasHint, id).toBe(true)
  }
  expect(blankOf('https://<resource>.example/v1')).toBe('resource')
  expect(blankOf('https://me.example/v1')).toBeNull()
})

it.each([
  ['sk-ant-api03-x', 'anthropic'],
  ['AIzaSyx', 'gemini'],
  [' gsk_x', 'groq'],
  ['xai-x', 'xai'],
  ['sk-or-v1-x', 'openrouter'],
  ['sk-proj-x', 'openai'],
  // Several providers have keys like these.
  ['sk-x', undefined],
  ['', undefined],
])('knows whose key %j is', (key, id) => {
  expect(presetOfKey(key)?.id).toBe(id)
})

it.each([
  ['qwen3:8b=0.1/0.4', { 'qwen3:8b': { input: 0.1, output: 0.4 } }],
  ['a=1/2/0.5, b=3/4/0.3/5', { a: { input: 1, output: 2, cached: 0.5 }, b: { input: 3, output: 4, cached: 0.3, cacheWrite: 5 } }],
  ['a=b=0/0', { 'a=b': { input: 0, output: 0 } }],
  ['', {}],
])('reads the prices of %j, and writes them as they were', (text, prices) => {
  expect(readPrices(text)).toEqual({ prices })
  expect(pricesText(prices)).toBe(text)
})

it.each(['a', 'a=1', 'a=1/2/3/4/5', 'a=-1/2', 'a=1/x', '=1/2', 'a=1//2'])('finds no price in %j', (text) => {
  expect(readPrices(text)).toEqual({ wrong: text })
})

describe('windows of single models', () => {
  it.each([
    ['', {}],
    ['qwen3:8b=40960', { 'qwen3:8b': 40_960 }],
    [' a/b=1_000_000,c=d=2048\ne=1024 ', { 'a/b': 1_000_000, 'c=d': 2_048, e: 1_024 }],
  ])('are read from %j', (text, windows) => {
    expect(readWindows(text)).toEqual({ windows })
    expect(readWindows(windowsText(windows))).toEqual({ windows })
  })

  it.each(['qwen3:8b', '=4096', 'a=', 'a=many', 'a=-1', 'a=1.5'])('are not read from %j', (text) => {
    expect(readWindows(`ok=1024, ${text}`)).toEqual({ wrong: text })
  })
})
