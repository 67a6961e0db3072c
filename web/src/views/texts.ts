/** Texts of views of tools alone, which come with the first call that has one: the page is loaded without them. */
import { i18n } from '@/locales'
import en from './texts.en.json'

i18n.global.mergeLocaleMessage('en', en)
