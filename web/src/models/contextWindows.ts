/** Context windows of single models as people write them: `model=tokens`, separated with commas. */

/** As text for a field. */
export function windowsText(windows: Record<string, number>): string {
  return Object.entries(windows)
    .map(([model, tokens]) => `${model}=${tokens}`)
    .join(', ')
}

/** The windows by model, or the first piece that says none. A model's name may hold a `=` itself. */
export function readWindows(text: string): { windows: Record<string, number> } | { wrong: string } {
  const windows: Record<string, number> = {}
  for (const piece of text.split(/[\s,]+/).filter(Boolean)) {
    const at = piece.lastIndexOf('=')
    const tokens = at > 0 ? readWindow(piece.slice(at + 1)) : null
    if (tokens === null) return { wrong: piece }
    windows[piece.slice(0, at)] = tokens
  }
  return { windows }
}

/** Whole tokens; null = the text says none. */
export function readWindow(text: string): number | null {
  const plain = text.trim().replaceAll('_', '')
  return /^\d{1,10}$/.test(plain) ? Number(plain) : null
}
