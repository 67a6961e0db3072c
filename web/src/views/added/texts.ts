/** Texts of what views add to messages, which come with the first view that does. */
import { i18n } from '@/locales'
import en from './texts.en.json'

i18n.global.mergeLocaleMessage('en', en)
