/** The words of a command as a person writes them: spaces part them, quotes keep them together. Nothing is expanded. */

/** Null while a quote is open. */
export function commandWords(text: string): string[] | null {
  const words: string[] = []
  let word: string | null = null
  let quote = ''
  for (const sign of text) {
    if (quote !== '') {
      if (sign === quote) quote = ''
      else word = (word ?? '') + sign
    } else if (sign === "'" || sign === '"') {
      quote = sign
      word ??= ''
    } else if (/\s/.test(sign)) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? '') + sign
  }
  if (quote !== '') return null
  return word === null ? words : [...words, word]
}
