/**
 * Formats ICU messages, which `scripts/texts.ts` has parsed. Only the formatter of FormatJS is part of the page: its
 * parser weighs more than the sign-in screen's own code.
 */
import type { MessageFormatElement } from '@formatjs/icu-messageformat-parser'
import { formatToParts, type Formatters } from 'intl-messageformat'
import type { MessageContext, MessageFunction } from 'vue-i18n'

/** Formats of `Intl` are dear to make and the same for a whole language: each is made once, when it is first needed. */
export function perLocale<T>(make: (locale: string) => T): (locale: string) => T {
  const made = new Map<string, T>()
  return (locale) => {
    const known = made.get(locale) ?? make(locale)
    made.set(locale, known)
    return known
  }
}

const numbers = perLocale((locale) => new Intl.NumberFormat(locale))
const cardinals = perLocale((locale) => new Intl.PluralRules(locale))

const formatters: Formatters = {
  getNumberFormat: (locale, options) => (options ? new Intl.NumberFormat(locale, options) : numbers(String(locale))),
  getPluralRules: (locale, options) => (options?.type === 'ordinal' ? new Intl.PluralRules(locale, options) : cardinals(String(locale))),
  getDateTimeFormat: (locale, options) => new Intl.DateTimeFormat(locale, options),
}
/** No named styles: a text writes the skeleton of a format. */
const STYLES = { number: {}, date: {}, time: {} }

/** `valueOf` gives an argument by its name; an argument without a value is empty. */
export function formatMessage(message: string | MessageFormatElement[], locale: string, valueOf: (name: string) => unknown): string {
  if (typeof message === 'string') return message
  // FormatJS fails for an argument that is not there.
  const values = new Proxy<Record<string, string>>({}, { has: () => true, get: (_, name) => valueOf(String(name)) })
  return formatToParts(message, locale, formatters, STYLES, values).map(({ value }) => String(value)).join('')
}

type Messages = { [key: string]: string | MessageFunction<string> | Messages }

/** Parsed texts as vue-i18n takes them: strings, and functions for messages with arguments. */
export function messagesOf(texts: object, locale: string): Messages {
  return Object.fromEntries(
    Object.entries(texts).map(([key, text]: [string, unknown]) => {
      if (Array.isArray(text)) return [key, (context: MessageContext<string>) => formatMessage(text as MessageFormatElement[], locale, (name) => context.named(name))]
      return [key, typeof text === 'string' ? text : messagesOf(text as object, locale)]
    }),
  ) as Messages
}
