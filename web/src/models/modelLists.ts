/** Fields with a value for each model. Prices are `model=input/output`, in US dollars per million tokens. */
import type { ProviderItem } from '@/wire/restTypes'

type Prices = ProviderItem['prices']
type Price = Prices[string]

/** As text for a field. */
export function pricesText(prices: Prices): string {
  return Object.entries(prices)
    .map(([model, { input, output, cached, cacheWrite }]) => `${model}=${[input, output, cached ?? (cacheWrite === undefined || cacheWrite === null ? undefined : input), cacheWrite ?? undefined].filter((part) => part !== undefined).join('/')}`)
    .join(', ')
}

/** The prices by model, or the first piece that says none. */
export function readPrices(text: string): { prices: Prices } | { wrong: string } {
  const prices: Prices = {}
  for (const piece of text.split(/[\s,]+/).filter(Boolean)) {
    const at = piece.lastIndexOf('=')
    const price = at > 0 ? readPrice(piece.slice(at + 1)) : null
    if (price === null) return { wrong: piece }
    prices[piece.slice(0, at)] = price
  }
  return { prices }
}

function readPrice(text: string): Price | null {
  const parts = text.split('/')
  if (parts.length < 2 || parts.length > 4 || parts.some((part) => !/^\d{1,7}(?:\.\d+)?$/.test(part))) return null
  const [input = 0, output = 0, cached, cacheWrite] = parts.map(Number)
  return { input, output, ...(cached === undefined ? {} : { cached }), ...(cacheWrite === undefined ? {} : { cacheWrite }) }
}

// Context windows are `model=tokens`, separated with commas.

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
