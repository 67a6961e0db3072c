/** Prices of single models as people write them: `model=input/output`, in US dollars per million tokens. */
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
