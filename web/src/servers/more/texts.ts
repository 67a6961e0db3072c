/** Texts of an entry's further fields and of the history of tools alone, which come with what says them. */
import { i18n } from '@/locales'
import en from './texts.en.json'

i18n.global.mergeLocaleMessage('en', en)
