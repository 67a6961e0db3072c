/** Parses the texts of the page while it is built: the page gets messages as elements, and needs no parser. */
import { parse, TYPE, type MessageFormatElement } from '@formatjs/icu-messageformat-parser'

export interface Texts {
  [key: string]: string | Texts
}

/** A text without arguments stays a string; all others are the elements of their ICU message. */
export interface ParsedTexts {
  [key: string]: string | MessageFormatElement[] | ParsedTexts
}

export function parseMessage(text: string): string | MessageFormatElement[] {
  const elements = parse(text, { ignoreTag: true })
  // The parser takes a brace that closes nothing as text; here it is a mistake unless it is quoted.
  if (elements.some((element) => element.type === TYPE.literal && element.value.includes('}')) && !text.includes("'")) {
    throw new SyntaxError('UNMATCHED_CLOSING_BRACE')
  }
  if (elements.length === 0) return ''
  const [first] = elements
  return elements.length === 1 && first?.type === TYPE.literal ? first.value : elements
}

export function parseTexts(texts: Texts, path = ''): ParsedTexts {
  return Object.fromEntries(
    Object.entries(texts).map(([key, text]) => {
      if (typeof text !== 'string') return [key, parseTexts(text, `${path}${key}.`)]
      try {
        return [key, parseMessage(text)]
      } catch (error) {
        throw new Error(`\`${path}${key}\` is no ICU message: ${text}`, { cause: error })
      }
    }),
  )
}
