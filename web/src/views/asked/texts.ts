/** Texts of calls that views ask for, which come with the first of them. */
import { i18n } from '@/locales'
import en from './texts.en.json'

i18n.global.mergeLocaleMessage('en', en)
