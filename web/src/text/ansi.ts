/** Reads the colours of terminal output; everything else a terminal would do is not done. */

export interface Run {
  text: string
  /** Names of our own classes; the colours behind them are safe in both themes. */
  classes: string[]
}

export type AnsiLine = Run[]

type Hue = 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'grey'

interface Style {
  hue: Hue | null
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  strike: boolean
  inverse: boolean
}

const PLAIN: Style = { hue: null, bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false }
const BASE_HUES: (Hue | null)[] = [null, 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', null]
/** `ESC [ … m` is kept; other control sequences carry no text and are passed over. */
const SEQUENCE = new RegExp(String.raw`\u001b\[([0-9;:]*)m|\u001b\[[0-?]*[ -/]*[@-~]`, 'g')

export function readAnsi(text: string): AnsiLine[] {
  const lines: AnsiLine[] = [[]]
  let style = PLAIN
  let from = 0
  // A carriage return would overwrite what was written before; here nothing may be overwritten.
  const source = text.replace(/\r\n?/g, '\n')
  for (const match of source.matchAll(SEQUENCE)) {
    append(lines, source.slice(from, match.index), style)
    if (match[1] !== undefined) style = restyled(style, match[1])
    from = match.index + match[0].length
  }
  append(lines, source.slice(from), style)
  return lines
}

function append(lines: AnsiLine[], text: string, style: Style): void {
  text.split('\n').forEach((part, index) => {
    if (index > 0) lines.push([])
    if (part !== '') lines.at(-1)?.push({ text: part, classes: classesOf(style) })
  })
}

function classesOf(style: Style): string[] {
  const flags = (['bold', 'dim', 'italic', 'underline', 'strike', 'inverse'] as const).filter((flag) => style[flag])
  return [...(style.hue === null ? [] : [style.hue]), ...flags].map((name) => `ansi-${name}`)
}

function restyled(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map(Number)
  let style = { ...before }
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0
    if (code === 38 || code === 48) {
      const wide = codes[at + 1] === 2
      if (code === 38) style.hue = wide ? hueOf(codes[at + 2], codes[at + 3], codes[at + 4]) : hueOfPalette(codes[at + 2] ?? 0)
      at += wide ? 4 : 2
    } else if (code === 0) style = { ...PLAIN }
    else style = { ...style, ...change(code) }
  }
  return style
}

/** Hidden text (8) and backgrounds are left out on purpose: nothing may be made unreadable. */
function change(code: number): Partial<Style> {
  if (code >= 30 && code <= 37) return { hue: BASE_HUES[code - 30] ?? null }
  if (code >= 91 && code <= 97) return { hue: BASE_HUES[code - 90] ?? null }
  switch (code) {
    case 1: return { bold: true }
    case 2: return { dim: true }
    case 3: return { italic: true }
    case 4: return { underline: true }
    case 7: return { inverse: true }
    case 9: return { strike: true }
    case 22: return { bold: false, dim: false }
    case 23: return { italic: false }
    case 24: return { underline: false }
    case 27: return { inverse: false }
    case 29: return { strike: false }
    case 39: return { hue: null }
    case 90: return { hue: 'grey' }
    default: return {}
  }
}

function hueOfPalette(index: number): Hue | null {
  if (index < 8) return BASE_HUES[index] ?? null
  if (index === 8) return 'grey'
  if (index < 16) return BASE_HUES[index - 8] ?? null
  if (index >= 232) return index < 246 ? 'grey' : null
  const cube = index - 16
  return hueOf(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51)
}

function hueOf(red = 0, green = 0, blue = 0): Hue | null {
  const most = Math.max(red, green, blue)
  const least = Math.min(red, green, blue)
  if (most - least < 40) return null
  const middle = (most + least) / 2
  const [r, g, b] = [red > middle, green > middle, blue > middle]
  if (r && g) return 'yellow'
  if (r && b) return 'magenta'
  if (g && b) return 'cyan'
  return r ? 'red' : g ? 'green' : 'blue'
}
