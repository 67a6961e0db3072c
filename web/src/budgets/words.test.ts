import { expect, it } from 'vitest'
import type { BudgetItem } from '@/wire/restTypes'
import { dollarsOf, leftWords, nameOf, shareOf, tightestOf } from './words'

function budget(change: Partial<BudgetItem>): BudgetItem {
  return {
    level: 'person',
    period: 'month',
    source: 'subject',
    limitUsd: 10,
    warnPercent: 80,
    isHard: true,
    usedUsd: 4,
    reservedUsd: 0,
    leftUsd: 6,
    isNear: false,
    isExhausted: false,
    mayChange: false,
    ...change,
  }
}

it.each([
  [{}, 'You, each month'],
  [{ level: 'tenant', period: 'day' }, 'Everybody here, each day'],
  [{ source: 'each' }, 'Each person, each month'],
  [{ name: 'ana', subject: 'usr_1' }, 'ana, each month'],
  [{ level: 'own', period: 'whole' }, 'This session, set by you'],
  [{ level: 'session', period: 'whole', source: 'settings' }, 'This session'],
  [{ level: 'turn', period: 'whole', source: 'settings' }, 'This turn'],
] as const)('names whose budget it is: %o', (change, name) => {
  expect(nameOf(budget(change))).toBe(name)
})

it('says what is left, or only the limit where the sum is for others', () => {
  expect(leftWords(budget({}))).toBe('$6.00 left of $10.00')
  expect(leftWords(budget({ isExhausted: true }))).toBe('$10.00 are used up')
  expect(leftWords(budget({ leftUsd: 1, isNear: true }))).toBe('Only $1.00 left of $10.00')
  expect(leftWords(budget({ leftUsd: null, isNear: true }))).toBe('Limit $10.00, nearly used up')
  expect(leftWords(budget({ leftUsd: null, usedUsd: null }))).toBe('Limit $10.00')
  expect([shareOf(budget({})), shareOf(budget({ usedUsd: null })), shareOf(budget({ limitUsd: 0 }))]).toEqual([0.4, null, 1])
})

it('takes for the tightest what refuses first', () => {
  const wide = budget({ leftUsd: 6 })
  const tight = budget({ leftUsd: 2 })
  const soft = budget({ leftUsd: 1, isHard: false })
  const unknown = budget({ leftUsd: null, isExhausted: true })
  expect(tightestOf([soft, wide, tight])).toBe(tight)
  expect(tightestOf([tight, unknown])).toBe(unknown)
  expect(tightestOf([])).toBeNull()
})

it.each([
  ['2.5', 2.5],
  [' 2,5 ', 2.5],
  ['0', 0],
  ['', null],
  ['-1', null],
  ['much', null],
  ['1e7', null],
])('reads an amount that was typed: %s', (typed, amount) => {
  expect(dollarsOf(typed)).toBe(amount)
})
