import { expect, it } from 'vitest'
import { stepsOf, totals } from './healthHistory'

it('fills the day and keeps what was seen in its place', () => {
  const now = Date.parse('2026-11-22T05:10:00Z')
  const steps = stepsOf(
    {
      stepSeconds: 1800,
      steps: [
        { from: '2026-11-20T05:00:00Z', well: 9, badly: 9 },
        { from: '2026-11-22T03:30:00+00:00', well: 1, badly: 2 },
        { from: '2026-11-22T05:00:00Z', well: 4, badly: 0 },
      ],
    },
    now,
  )
  expect(steps).toHaveLength(48)
  expect(steps[0]?.from).toBe(Date.parse('2026-11-21T05:30:00Z'))
  expect(steps.at(-1)).toEqual({ from: Date.parse('2026-11-22T05:00:00Z'), well: 4, badly: 0 })
  expect(steps.at(-4)).toMatchObject({ well: 1, badly: 2 })
  expect(totals(steps)).toEqual({ well: 5, all: 7 })
})
