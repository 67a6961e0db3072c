/** Settings that are written one a line, and back. */

/** `NAME<separator>value` a line; lines without the separator are problems, not lost. */
export function pairs(text: string, separator: '=' | ':'): { pairs: Record<string, string>; wrong: string[] } {
  const found: Record<string, string> = {}
  const wrong: string[] = []
  for (const line of lines(text)) {
    const at = line.indexOf(separator)
    if (at <= 0) wrong.push(line)
    else found[line.slice(0, at).trim()] = separator === ':' ? line.slice(at + 1).trim() : line.slice(at + 1)
  }
  return { pairs: found, wrong }
}

export function fromPairs(values: Record<string, string> | undefined, separator: '=' | ':'): string {
  const glue = separator === ':' ? ': ' : '='
  return Object.entries(values ?? {})
    .map(([name, value]) => `${name}${glue}${value}`)
    .join('\n')
}

/** Lines that say something. */
export function lines(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '')
}

/** Arguments one a line; one that a line cannot hold (empty, several lines) stands in double quotes, as in JSON. */
export function fromWords(words: string[] | undefined): string {
  return (words ?? []).map((word) => (word.trim() === '' || /[\n\r]/.test(word) || quoted(word) !== null ? JSON.stringify(word) : word)).join('\n')
}

export function toWords(text: string): string[] {
  return lines(text).map((line) => quoted(line) ?? line)
}

function quoted(line: string): string | null {
  if (!line.startsWith('"')) return null
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}
