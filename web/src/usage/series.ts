/** Reports to what charts draw: a value for each day and each series. Pure. */
import { t } from '@/locales'
import type { UsageItem, UsageParts } from '@/wire/restTypes'
import './texts.en.json'

export interface Series {
  name: string
  /** One for each day. */
  values: number[]
  /** The days of which not everything is known. */
  unknown?: boolean[]
}

const USAGE_PARTS: readonly (keyof UsageParts)[] = ['system', 'tools', 'history', 'results', 'message', 'attachments', 'reasoning', 'unknown']

/** Series that are drawn apart; the others are drawn together. */
const MOST = 6

/** What each model cost on each day, the dearest first. What nobody knows is no value, and is not nothing either. */
export function costByModel(days: string[], items: UsageItem[]): Series[] {
  const places = new Map(days.map((day, place) => [day, place]))
  const models = new Map<string, Required<Series>>()
  for (const { day, provider, model, requests } of items) {
    const place = places.get(day ?? '')
    if (place === undefined || !requests) continue
    const name = `${provider}/${model}`
    const series = models.get(name) ?? { name, values: days.map(() => 0), unknown: days.map(() => false) }
    series.values[place] = (series.values[place] ?? 0) + (requests.costUsd ?? 0)
    series.unknown[place] = requests.unpricedRequests > 0
    models.set(name, series)
  }
  const all = [...models.values()].filter(({ values, unknown }) => sum(values) > 0 || unknown.includes(true))
  all.sort((one, other) => sum(other.values) - sum(one.values))
  return few(days, all)
}

/** What the tokens of each day were for. */
export function tokensByPart(days: string[], items: UsageItem[]): Series[] {
  const byDay = new Map(items.map(({ day, requests }) => [day, requests]))
  const parts = USAGE_PARTS.map((part) => ({
    name: t(`usage.part.${part}`),
    values: days.map((day) => byDay.get(day)?.parts[part] ?? 0),
  }))
  const output = { name: t('usage.part.output'), values: days.map((day) => byDay.get(day)?.outputTokens ?? 0) }
  return [...parts, output].filter(({ values }) => sum(values) > 0)
}

function few(days: string[], series: Series[]): Series[] {
  if (series.length <= MOST) return series
  const others = series.slice(MOST - 1)
  const values = days.map((_, place) => sum(others.map((other) => other.values[place] ?? 0)))
  const unknown = days.map((_, place) => others.some((other) => other.unknown?.[place]))
  return [...series.slice(0, MOST - 1), { name: t('usage.otherModels', { n: others.length }), values, unknown }]
}

export function sum(values: number[]): number {
  return values.reduce((all, value) => all + value, 0)
}
