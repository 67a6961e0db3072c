/**
 * TeX to MathML, by KaTeX, which comes with the first formula. Nothing of what KaTeX writes is put into the page:
 * its text is read, and built anew from the elements and attributes below. There are no colours, links, styles,
 * classes or images among them, and no measure that reaches far.
 */
import { renderToString } from 'katex'
import './math.css'

/** An element of MathML as it will be built. */
export interface MathElement {
  tag: string
  attributes: Record<string, string>
  children: (MathElement | string)[]
}

/** What is longer stays as it is written. */
export const MAX_TEX = 4_000
const MAX_ELEMENTS = 3_000
const MAX_DEPTH = 100
/** In `em`: how far a formula may move or stretch anything. */
const MAX_SIZE = 20

const TAGS = new Set([
  'math', 'semantics', 'annotation', 'mrow', 'mi', 'mn', 'mo', 'mtext', 'mspace', 'mfrac', 'msqrt', 'mroot', 'msub', 'msup',
  'msubsup', 'munder', 'mover', 'munderover', 'mmultiscripts', 'mtable', 'mtr', 'mtd', 'mpadded', 'mphantom', 'mstyle', 'menclose', 'ms',
])
const FLAG = /^(?:true|false)$/
const LENGTH = /^-?\d*\.?\d+(?:em|ex|px|pt|mu)?$/
const ATTRIBUTES: ReadonlyMap<string, RegExp> = new Map([
  ['display', /^block$/],
  ['displaystyle', FLAG],
  ['scriptlevel', /^\+?\d$/],
  ['stretchy', FLAG],
  ['fence', FLAG],
  ['separator', FLAG],
  ['largeop', FLAG],
  ['movablelimits', FLAG],
  ['accent', FLAG],
  ['accentunder', FLAG],
  ['lspace', LENGTH],
  ['rspace', LENGTH],
  ['width', LENGTH],
  ['height', LENGTH],
  ['depth', LENGTH],
  ['voffset', LENGTH],
  ['minsize', LENGTH],
  ['maxsize', LENGTH],
  ['linethickness', LENGTH],
  ['mathsize', LENGTH],
])
const ENCLOSURES = new Set(['box', 'updiagonalstrike', 'downdiagonalstrike', 'horizontalstrike', 'longdiv', 'phasorangle'])
const ENTITIES: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#x27;': "'", '&nbsp;': '\u00a0' }
const PIECE = /<(\/?)([a-zA-Z]+)((?:\s+[\w:-]+="[^"]*")*)\s*(\/?)>|([^<]+)/g
const ATTRIBUTE = /([\w:-]+)="([^"]*)"/g

/** Null where it is no formula that KaTeX can read, or more than a page should draw. */
export function typeset(tex: string, isBlock: boolean): MathElement | null {
  if (tex.length > MAX_TEX) return null
  try {
    const options = { output: 'mathml', displayMode: isBlock, throwOnError: true, trust: false, strict: 'ignore', maxExpand: 200, maxSize: MAX_SIZE } as const
    const root = read(renderToString(tex, options))
    return root === null ? null : element(root)
  } catch {
    // Wrong TeX, or too deep for the stack.
    return null
  }
}

/** The first `math` in what KaTeX wrote, whose form is regular: every attribute has quotes, every element an end. */
function read(written: string): MathElement | null {
  const stack: MathElement[] = [{ tag: 'mrow', attributes: {}, children: [] }]
  let elements = 0
  for (const [, closes, tag = '', attributes = '', isEmpty, text] of written.matchAll(PIECE)) {
    const parent = stack.at(-1)
    if (parent === undefined) return null
    if (text !== undefined) parent.children.push(plain(text))
    else if (closes) stack.pop()
    else {
      elements += 1
      if (elements > MAX_ELEMENTS || stack.length > MAX_DEPTH) return null
      const element = { tag, attributes: attributesOf(attributes), children: [] }
      parent.children.push(element)
      if (!isEmpty) stack.push(element)
    }
  }
  return stack[0] === undefined ? null : find(stack[0])
}

function find(element: MathElement): MathElement | null {
  if (element.tag === 'math') return element
  for (const child of element.children) {
    const found = typeof child === 'string' ? null : find(child)
    if (found !== null) return found
  }
  return null
}

function attributesOf(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(ATTRIBUTE)].map(([, name = '', value = '']) => [name, plain(value)]))
}

function plain(text: string): string {
  return text.replace(/&[#\w]+;/g, (entity) => ENTITIES[entity] ?? entity)
}

/** The same from allowed parts; an element that is not allowed gives its children to a row. */
function element(node: MathElement): MathElement {
  if (node.tag === 'annotation') return { ...node, attributes: { encoding: 'application/x-tex' } }
  const face = node.attributes.mathvariant
  const children = node.children.map((child) => (typeof child === 'string' ? inFace(child, face ?? '') : element(child)))
  const attributes = allowed(node.attributes)
  if (node.tag === 'mi' && face !== undefined && face !== 'italic') attributes.mathvariant = 'normal'
  if (node.tag === 'mtable') return { tag: 'mtable', attributes, children: aligned(children, node.attributes) }
  if (node.tag === 'menclose') {
    const classes = (node.attributes.notation ?? '').split(' ').filter((name) => ENCLOSURES.has(name)).map((name) => `md-math-${name}`)
    return { tag: 'mrow', attributes: { class: ['md-math-enclosed', ...classes].join(' ') }, children }
  }
  return { tag: TAGS.has(node.tag) ? node.tag : 'mrow', attributes, children }
}

function allowed(attributes: Record<string, string>): Record<string, string> {
  const kept = Object.entries(attributes).filter(([name, value]) => {
    const form = ATTRIBUTES.get(name)
    return form?.test(value) === true && (form !== LENGTH || Math.abs(Number.parseFloat(value)) <= MAX_SIZE)
  })
  return Object.fromEntries(kept)
}

/** Columns to their sides, and close together where TeX has no space between them; browsers read neither attribute. */
function aligned(rows: (MathElement | string)[], { columnalign = '', columnspacing = '' }: Record<string, string>): (MathElement | string)[] {
  const sides = columnalign.split(' ')
  const gaps = columnspacing.split(' ')
  return rows.map((row) => {
    if (typeof row === 'string') return row
    const cells = row.children.map((cell, index) => {
      if (typeof cell === 'string') return cell
      const side = { left: 'md-math-start', right: 'md-math-end' }[sides[index] ?? '']
      const classes = [side, gaps[index] === '0em' ? 'md-math-tight' : '', gaps[index - 1] === '0em' ? 'md-math-close' : ''].filter(Boolean)
      return classes.length > 0 ? { ...cell, attributes: { ...cell.attributes, class: classes.join(' ') } } : cell
    })
    return { ...row, children: cells }
  })
}

// Letters of mathematics. The MathML of browsers knows no `mathvariant`: each face has letters of its own.

interface Face {
  capital: number
  small: number
  digit?: number
  greekCapital?: number
  greekSmall?: number
  /** Letters that stood elsewhere before the face was made. */
  moved?: Readonly<Record<string, number>>
}

const FACES: ReadonlyMap<string, Face> = new Map<string, Face>([
  ['bold', { capital: 0x1d400, small: 0x1d41a, digit: 0x1d7ce, greekCapital: 0x1d6a8, greekSmall: 0x1d6c2 }],
  ['italic', { capital: 0x1d434, small: 0x1d44e, greekCapital: 0x1d6e2, greekSmall: 0x1d6fc, moved: { h: 0x210e } }],
  ['bold-italic', { capital: 0x1d468, small: 0x1d482, greekCapital: 0x1d71c, greekSmall: 0x1d736 }],
  ['script', { capital: 0x1d49c, small: 0x1d4b6, moved: { B: 0x212c, E: 0x2130, F: 0x2131, H: 0x210b, I: 0x2110, L: 0x2112, M: 0x2133, R: 0x211b, e: 0x212f, g: 0x210a, o: 0x2134 } }],
  ['bold-script', { capital: 0x1d4d0, small: 0x1d4ea }],
  ['fraktur', { capital: 0x1d504, small: 0x1d51e, moved: { C: 0x212d, H: 0x210c, I: 0x2111, R: 0x211c, Z: 0x2128 } }],
  ['bold-fraktur', { capital: 0x1d56c, small: 0x1d586 }],
  ['double-struck', { capital: 0x1d538, small: 0x1d552, digit: 0x1d7d8, moved: { C: 0x2102, H: 0x210d, N: 0x2115, P: 0x2119, Q: 0x211a, R: 0x211d, Z: 0x2124 } }],
  ['sans-serif', { capital: 0x1d5a0, small: 0x1d5ba, digit: 0x1d7e2 }],
  ['bold-sans-serif', { capital: 0x1d5d4, small: 0x1d5ee, digit: 0x1d7ec }],
  ['sans-serif-italic', { capital: 0x1d608, small: 0x1d622 }],
  ['sans-serif-bold-italic', { capital: 0x1d63c, small: 0x1d656 }],
  ['monospace', { capital: 0x1d670, small: 0x1d68a, digit: 0x1d7f6 }],
])

/** The text in that face; what the face does not have stays as it is. */
export function inFace(text: string, name: string): string {
  const face = FACES.get(name)
  return face === undefined ? text : [...text].map((letter) => letterOf(letter, face)).join('')
}

function letterOf(letter: string, face: Face): string {
  const moved = face.moved?.[letter]
  if (moved !== undefined) return String.fromCodePoint(moved)
  const found = [
    ['A', 'Z', face.capital],
    ['a', 'z', face.small],
    ['0', '9', face.digit],
    ['Α', 'Ω', face.greekCapital],
    ['α', 'ω', face.greekSmall],
  ].find(([from, to, base]) => base !== undefined && letter >= String(from) && letter <= String(to))
  if (found === undefined) return letter
  return String.fromCodePoint(Number(found[2]) + (letter.codePointAt(0) ?? 0) - (String(found[0]).codePointAt(0) ?? 0))
}
