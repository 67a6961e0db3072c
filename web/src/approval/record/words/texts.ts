/** Texts of a bar of progress alone, which come with the first bar: the page is loaded without them. */
import { i18n } from '@/locales'
import en from './texts.en.json'

i18n.global.mergeLocaleMessage('en', en)
