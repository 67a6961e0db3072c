/** The reports behind the page of usage: its table, its charts and the names of its filters. */
import { ref, shallowRef } from 'vue'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { UsageItem, UsagePage, UsagePerson, UsageQuery } from '@/wire/restTypes'
import { requestOf, type UsageFilters } from './filters'

const ROWS = 50
/** Pages that are put together for a chart. */
const MOST_PAGES = 10

export function useUsage() {
  const report = shallowRef<UsagePage | null>(null)
  const days = shallowRef<UsageItem[]>([])
  const models = shallowRef<UsageItem[]>([])
  const people = shallowRef<UsagePerson[]>([])
  const choices = shallowRef<string[]>([])
  const problem = ref<string | null>(null)
  const isLoading = ref(false)
  let newest = 0

  async function load(filters: UsageFilters, isOfPeople: boolean): Promise<void> {
    newest += 1
    const turn = newest
    isLoading.value = true
    problem.value = null
    const { sort, order, cursor } = filters
    const range = { from: filters.from, to: filters.to }
    try {
      const [table, ofDays, ofModels, named, chosen] = await Promise.all([
        rest.usage({ ...requestOf(filters), sort, order, limit: ROWS, ...(cursor && { cursor }) }),
        all(requestOf(filters, 'day')),
        all(requestOf(filters, 'day,model')),
        isOfPeople ? all({ ...range, by: 'person', sort: 'name' }) : [],
        all({ ...range, by: 'model', sort: 'name' }),
      ])
      if (turn !== newest) return
      report.value = table
      days.value = ofDays
      models.value = ofModels
      people.value = named.flatMap(({ person }) => (person ? [person] : []))
      choices.value = chosen.map(({ provider, model }) => `${provider}/${model}`)
    } catch (error) {
      if (turn === newest) problem.value = error instanceof RequestError && error.code !== 'offline' ? error.message : ''
    } finally {
      if (turn === newest) isLoading.value = false
    }
  }

  return { report, days, models, people, choices, problem, isLoading, load }
}

async function all(query: UsageQuery): Promise<UsageItem[]> {
  const items: UsageItem[] = []
  let cursor: string | null | undefined = '0'
  for (let page = 0; page < MOST_PAGES && cursor; page += 1) {
    const answer: UsagePage = await rest.usage({ ...query, limit: 1000, cursor })
    items.push(...answer.items)
    cursor = answer.nextCursor
  }
  return items
}
