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

/** Of single models, as text for a field. */
export function effortsText(efforts: Record<string, string>): string {
  return Object.entries(efforts)
    .map(([model, effort]) => `${model}=${effort}`)
    .join(', ')
}

/** The efforts by model, or the first piece that says none. A model's name may hold a `=` itself. */
export function readEfforts(text: string): { efforts: Record<string, string> } | { wrong: string } {
  const efforts: Record<string, string> = {}
  for (const piece of text.split(/[\s,]+/).filter(Boolean)) {
    const at = piece.lastIndexOf('=')
    const said = piece.slice(at + 1).toLowerCase()
    const effort = at > 0 ? (isLevel(said) ? said : readTokens(said)) : null
    if (effort === null) return { wrong: piece }
    efforts[piece.slice(0, at)] = effort
  }
  return { efforts }
}

/** Whole tokens, at least one and no more than the server can count; null = the text says none. */
export function readTokens(text: string): string | null {
  const plain = text.trim().replace(/[_,\s]/g, '')
  return /^\d{1,10}$/.test(plain) && Number(plain) >= 1 && Number(plain) <= 0xffffffff ? String(Number(plain)) : null
}
