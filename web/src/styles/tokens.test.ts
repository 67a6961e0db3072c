import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { KINDS } from '@/highlight/kinds'

/** WCAG 2.2 AA for text of ordinary size. */
const ENOUGH = 4.5

// Every test runs in `web/`; the environment of a browser gives modules no file address.
const TOKENS = readFileSync('src/styles/tokens.css', 'utf8')
const STYLES = readFileSync('src/markdown/drawn.css', 'utf8')

/** The variables of the first rule with exactly this selector. */
function variables(selector: string): Map<string, string> {
  const start = TOKENS.indexOf(`\n${selector} {`)
  const body = TOKENS.slice(start, TOKENS.indexOf('\n}', start))
  return new Map([...body.matchAll(/(--[\w-]+):\s*([^;]+);/g)].map(([, name = '', value = '']) => [name, value]))
}

const LIGHT = variables(':root')
const THEMES = { light: LIGHT, dark: new Map([...LIGHT, ...variables(':root.dark')]) }

function resolve(theme: Map<string, string>, name: string): string {
  const value = theme.get(name) ?? ''
  const other = /^var\((--[\w-]+)\)$/.exec(value)?.[1]
  return other === undefined ? value : resolve(theme, other)
}

function luminance(colour: string): number {
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(colour)?.[1]
  if (digits === undefined) throw new Error(`\`${colour}\` is no colour that this test can read`)
  const pairs = digits.length === 3 ? [...digits].map((digit) => digit + digit) : (digits.match(/../g) ?? [])
  const [red = 0, green = 0, blue = 0] = pairs
    .map((pair) => Number.parseInt(pair, 16) / 255)
    .map((part) => (part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

describe('colours of code', () => {
  const kinds = KINDS.filter((kind) => kind !== 'plain')

  it('are measured right', () => {
    expect(contrast('#000', '#fff')).toBeCloseTo(21, 5)
    expect(contrast('#767676', '#ffffff')).toBeCloseTo(4.54, 2)
  })

  it.each(kinds)('`%s` has a rule', (kind) => {
    expect(STYLES).toContain(`.md .md-code-${kind} {\n  color: var(--code-${kind});\n}`)
  })

  describe.each(Object.entries(THEMES))('%s', (_, theme) => {
    const grounds = ['--paper', '--rail', '--raised']
    it.each(kinds.flatMap((kind) => grounds.map((ground) => [kind, ground])))('`%s` can be read on `%s`', (kind, ground) => {
      expect(contrast(resolve(theme, `--code-${kind}`), resolve(theme, ground))).toBeGreaterThanOrEqual(ENOUGH)
    })
  })

  it('of the dark theme are its own', () => {
    for (const kind of kinds) expect(resolve(THEMES.dark, `--code-${kind}`)).not.toBe(resolve(THEMES.light, `--code-${kind}`))
  })
})
