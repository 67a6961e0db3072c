/** The languages of the page, and the texts by their keys. */
import { createI18n } from 'vue-i18n'
import en from './en.json'
import { messagesOf } from './messages'

export const i18n = createI18n({
  legacy: false,
  locale: 'en',
  fallbackLocale: 'en',
  messages: { en: messagesOf(en, 'en') as unknown as typeof en },
  // Messages with arguments are functions; what is left is plain text.
  messageCompiler: (text) => () => String(text),
})

/** Adds texts that are loaded later; `vite.config.ts` makes the import of a `*.en.json` call it. */
export function addTexts(texts: object): void {
  i18n.global.mergeLocaleMessage('en', messagesOf(texts, 'en'))
}

/** For text outside of components. */
export function t(key: string, values: Record<string, unknown> = {}): string {
  return i18n.global.t(key, values)
}

export function locale(): string {
  return i18n.global.locale.value
}
