/** Texts of hosts that a session's commands may reach, which come with what says them: the page is loaded without them. */
import { i18n } from '@/locales'
import en from './texts.en.json'

i18n.global.mergeLocaleMessage('en', en)
