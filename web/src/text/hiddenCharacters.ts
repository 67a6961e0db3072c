/**
 * Makes text safe to judge by eye: what cannot be seen, or looks like something else, becomes an escape.
 * One approves exact strings here, so two different strings must never look the same.
 */

export type PieceKind = 'text' | 'escape' | 'host'

export interface Piece {
  kind: PieceKind
  text: string
  /** How many characters a network form was made of; every other escape is one. */
  standsFor?: number
}

export interface Visible {
  pieces: Piece[]
  /** True when at least one escape had to be drawn. */
  hasHidden: boolean
}

export interface VisibleOptions {
  /** Line breaks and tabs become escapes too: for titles and one-line rows. */
  oneLine?: boolean
}

/** Marks stacked higher than this cover the lines beside them. */
const MAX_COMBINING_MARKS = 4

/** A pictograph with its selectors and joiners is drawn as one sign; those joiners hide nothing. */
const EMOJI = String.raw`(?!\p{Cn})\p{Extended_Pictographic}(?:\p{EMod}|\uFE0F)?(?:\u200D(?!\p{Cn})\p{Extended_Pictographic}(?:\p{EMod}|\uFE0F)?)*|[0-9#*]\uFE0F\u20E3`
/** The brackets of our own escapes are escaped as well, so that an escape cannot be forged. */
const HIDDEN = String.raw`\p{C}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point}|[\u27E6\u27E7\u2800]|[^\S \n\t]|(?<=\p{M}{${MAX_COMBINING_MARKS}})\p{M}`
const LOOKS_LIKE_PUNCTUATION = String.raw`(?<=[A-Za-z0-9])[\u2024\u2044\u2215\u2236\u29F8\u3002\uA789\uFF0E\uFF0F\uFF1A\uFF20\uFF61](?=[A-Za-z0-9])`

const SPECIAL = new RegExp(`(?<emoji>${EMOJI})|(?<hidden>${HIDDEN}|${LOOKS_LIKE_PUNCTUATION})`, 'gu')
const WORD = /[^\s/\\?#"'<>`()[\]{},;=&|]+/gu
const LETTER_RUN = /[\p{L}\p{M}\p{N}]+/gu
const NOT_ASCII = /[^\u0000-\u007f]/u
const COMPATIBILITY_LETTER = /[\uFF10-\uFF19\uFF21-\uFF3A\uFF41-\uFF5A\u{1D400}-\u{1D7FF}\u24B6-\u24E9\u2100-\u214F]/u

/** Letters of other scripts that are drawn like a Latin one in common faces. */
const LOOK_ALIKES = new Set([
  ...'аеорсухіјѕԁԛԝһӏґѵьпАВЕКМНОРСТУХІЈЅԚԜӀҮ',
  ...'αγεηικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ',
  ...'օսոզցհյքԱՕՍԼ',
  ...'ᎠᎡᎢᎥᎪᎬᎳᎷᎻᏀᏃᏎᏏᏒᏔᏙᏚᏞᏟᏢᏦᏴ',
])

export function visible(text: string, options: VisibleOptions = {}): Visible {
  const pieces: Piece[] = []
  let from = 0
  for (const word of NOT_ASCII.test(text) ? text.matchAll(WORD) : []) {
    if (!NOT_ASCII.test(word[0])) continue
    const isHost = text.slice(Math.max(0, word.index - 3), word.index) === '://'
    escapeHidden(text.slice(from, word.index), options, pieces)
    if (isHost) escapeAuthority(word[0], options, pieces)
    else escapeWord(word[0], options, pieces)
    from = word.index + word[0].length
  }
  escapeHidden(text.slice(from), options, pieces)
  return { pieces: merged(pieces), hasHidden: pieces.some((piece) => piece.kind !== 'text') }
}

export function visibleText(text: string, options: VisibleOptions = {}): string {
  return visible(text, options).pieces.map((piece) => piece.text).join('')
}

export function hasHidden(text: string): boolean {
  return visible(text).hasHidden
}

/** A bare host name; what is not plain ASCII is shown in the form that the network uses. */
export function visibleHost(host: string): string {
  const pieces: Piece[] = []
  escapeAuthority(host, { oneLine: true }, pieces)
  return pieces.map((piece) => piece.text).join('')
}

export function escapeOf(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return `⟦U+${code}⟧`
}

function escapeHidden(text: string, options: VisibleOptions, pieces: Piece[]): void {
  let from = 0
  for (const match of text.matchAll(SPECIAL)) {
    const hidden = match.groups?.hidden
    if (hidden === undefined || (!options.oneLine && (hidden === '\n' || hidden === '\t'))) continue
    pushText(text.slice(from, match.index), pieces)
    pieces.push({ kind: 'escape', text: escapeOf(hidden) })
    from = match.index + match[0].length
  }
  pushText(text.slice(from), pieces)
}

/** `user@host:port` after `://`. */
function escapeAuthority(authority: string, options: VisibleOptions, pieces: Piece[]): void {
  const at = authority.lastIndexOf('@') + 1
  const end = /:\d*$/.exec(authority)?.index ?? authority.length
  const host = authority.slice(at, Math.max(at, end))
  escapeWord(authority.slice(0, at), options, pieces)
  if (!NOT_ASCII.test(host)) escapeHidden(host, options, pieces)
  else pushHost(host, pieces)
  escapeHidden(authority.slice(at + host.length), options, pieces)
}

function pushHost(host: string, pieces: Piece[]): void {
  const ascii = asciiHost(host)
  if (ascii !== null) {
    pieces.push({ kind: 'host', text: `⟦${ascii}⟧`, standsFor: [...host].length })
    return
  }
  for (const character of host) {
    if (NOT_ASCII.test(character) || /\p{C}/u.test(character)) pieces.push({ kind: 'escape', text: escapeOf(character) })
    else pushText(character, pieces)
  }
}

/** Null when the network form would hide a difference (mapped or ignored characters) or does not exist. */
function asciiHost(host: string): string | null {
  if (/[\p{C}\p{Default_Ignorable_Code_Point}\u3002\uFF0E\uFF61]/u.test(host) || COMPATIBILITY_LETTER.test(host)) return null
  try {
    const ascii = new URL(`http://${host}/`).hostname
    return ascii.includes('xn--') ? ascii : null
  } catch {
    return null
  }
}

function escapeWord(word: string, options: VisibleOptions, pieces: Piece[]): void {
  const isHostShaped = /\.[A-Za-z]{2,}$/.test(word) || /\.[A-Za-z]{2,}[.:]/.test(word)
  let from = 0
  for (const run of word.matchAll(LETTER_RUN)) {
    if (!isLookAlike(run[0], isHostShaped)) continue
    escapeHidden(word.slice(from, run.index), options, pieces)
    for (const character of run[0]) {
      if (LOOK_ALIKES.has(character) || COMPATIBILITY_LETTER.test(character)) pieces.push({ kind: 'escape', text: escapeOf(character) })
      else escapeHidden(character, options, pieces)
    }
    from = run.index + run[0].length
  }
  escapeHidden(word.slice(from), options, pieces)
}

/** A run that mixes Latin with look-alikes, or a host label made of nothing but look-alikes. */
function isLookAlike(run: string, isHostShaped: boolean): boolean {
  const characters = [...run]
  const alikes = characters.filter((character) => LOOK_ALIKES.has(character) || COMPATIBILITY_LETTER.test(character))
  if (alikes.length === 0) return false
  return /[A-Za-z]/.test(run) || (isHostShaped && alikes.length === characters.length)
}

function pushText(text: string, pieces: Piece[]): void {
  if (text !== '') pieces.push({ kind: 'text', text })
}

function merged(pieces: Piece[]): Piece[] {
  const result: Piece[] = []
  for (const piece of pieces) {
    const last = result.at(-1)
    if (last !== undefined && last.kind === 'text' && piece.kind === 'text') last.text += piece.text
    else result.push({ ...piece })
  }
  return result
}
