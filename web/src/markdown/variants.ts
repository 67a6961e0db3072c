/** Letters of mathematics. MathML as browsers have it knows no `mathvariant`: each face is letters of its own. */

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
