/** How much a model thinks before it answers: a level, or a number of tokens as text; null = as it does by itself. */
import { t } from '@/locales'
import { count } from '@/locales/format'

export const LEVELS = ['off', 'minimal', 'low', 'medium', 'high', 'max'] as const

export function isLevel(effort: string): boolean {
  return LEVELS.some((level) => level === effort)
}

export function effortWords(effort: string | null): string {
  if (effort === null) return t('effort.usual')
  return isLevel(effort) ? t(`effort.${effort}`) : t('effort.tokens', { n: count(Number(effort)) })
}

/** Whole tokens, at least one and no more than the server can count; null = the text says none. */
export function readTokens(text: string): string | null {
  const plain = text.trim().replace(/[_,\s]/g, '')
  return /^\d{1,10}$/.test(plain) && Number(plain) >= 1 && Number(plain) <= 0xffffffff ? String(Number(plain)) : null
}
