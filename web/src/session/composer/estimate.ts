/** About what the next request costs before anybody is asked, as pure functions. Unknown is never 0. */
import type { Model } from '@/wire/restTypes'
import type { Attachment } from '@/wire/types'

type Price = Model['prices'][number]

/** As the gateway counts where no vocabulary is known. */
const CHARACTERS_PER_TOKEN = 4
const MESSAGE_OVERHEAD = 4
const PIXELS_PER_TOKEN = 750
const PDF_BYTES_PER_TOKEN = 40
const MAX_PDF = 100_000

/** Tokens of a message that is being written. */
export function draftTokens(text: string, attachments: readonly Attachment[]): number {
  const attached = attachments.reduce((sum, attachment) => sum + attachmentTokens(attachment), 0)
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN) + MESSAGE_OVERHEAD + attached
}

function attachmentTokens({ mediaType, bytes, width, height }: Attachment): number {
  if (mediaType.startsWith('image/')) return Math.ceil(((width ?? 1) * (height ?? 1)) / PIXELS_PER_TOKEN)
  if (mediaType === 'application/pdf') return Math.min(Math.ceil(bytes / PDF_BYTES_PER_TOKEN), MAX_PDF)
  return Math.ceil(bytes / CHARACTERS_PER_TOKEN)
}

/** What a request of so much input pays per million tokens; null = nobody knows. */
export function priceFor(model: Pick<Model, 'prices'>, input: number): Price | null {
  const holding = model.prices.filter(({ above }) => above === 0 || input > above)
  return holding.sort((a, b) => b.above - a.above)[0] ?? null
}

/** Dollars of a request's input. What is read from a cache of unknown price is taken for fresh, which is never too little. */
export function inputCost(price: Price, input: number, cached: number): number {
  const fromCache = Math.min(cached, input)
  return ((input - fromCache) * price.input + fromCache * (price.cached ?? price.input)) / 1_000_000
}

/** How much of the input the vendor's cache had, from 0 to 1, as the provider reported it of an answer. */
export function cachedShare(usage: Readonly<Record<string, unknown>> | undefined): number {
  const { inputTokens, cachedTokens } = usage ?? {}
  if (typeof inputTokens !== 'number' || typeof cachedTokens !== 'number' || inputTokens <= 0) return 0
  return Math.min(1, Math.max(0, cachedTokens / inputTokens))
}
