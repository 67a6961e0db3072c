/** The last 24 hours of a server in even steps, with words for those who do not see the strip. Pure. */
import type { ServerDay } from '@/wire/restTypes'

export interface Step {
  /** Milliseconds since the epoch. */
  from: number
  well: number
  badly: number
}

/** How many steps a strip has. */
const STEPS = 48

/** Every step of the last 24 hours, oldest first; those in which nothing was seen are empty. */
export function stepsOf(day: Pick<ServerDay, 'stepSeconds' | 'steps'>, now: number): Step[] {
  const length = day.stepSeconds * 1000
  const last = Math.floor(now / length) * length
  const seen = new Map(day.steps.map((step) => [Date.parse(step.from), step]))
  return Array.from({ length: STEPS }, (_, at) => {
    const from = last - (STEPS - 1 - at) * length
    const { well = 0, badly = 0 } = seen.get(from) ?? {}
    return { from, well, badly }
  })
}

export function totals(steps: Step[]): { well: number; all: number } {
  const well = steps.reduce((sum, step) => sum + step.well, 0)
  return { well, all: steps.reduce((sum, step) => sum + step.badly, well) }
}
