/** One place that knows which languages there are and how a message becomes text. */
import { createI18n, type MessageContext, type MessageFunction } from 'vue-i18n'
import { compile } from './icu'
import en from './en.json'

export const i18n = createI18n({
  legacy: false,
  locale: 'en',
  fallbackLocale: 'en',
  messages: { en },
  messageCompiler: (message, { locale }): MessageFunction<string> => {
    if (typeof message !== 'string') throw new Error('messages are plain text')
    const format = compile(message, locale)
    return (context: MessageContext<string>) => format((name) => context.named(name))
  },
})

/** Adds texts that are loaded later; `vite.config.ts` makes the import of a `*.en.json` call it. */
export function addTexts(texts: Record<string, unknown>): void {
  i18n.global.mergeLocaleMessage('en', texts)
}

/** For text outside of components. */
export function t(key: string, values: Record<string, unknown> = {}): string {
  return i18n.global.t(key, values)
}

export function locale(): string {
  return i18n.global.locale.value
}
