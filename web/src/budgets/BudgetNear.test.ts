import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { EMPTY } from '@/session/conversation/conversation'
import { withRunning } from '@/session/conversation/streaming'
import { useSession } from '@/session/store/session'
import { rest } from '@/wire/rest'
import type { BudgetItem } from '@/wire/restTypes'
import BudgetNear from './BudgetNear.vue'

beforeEach(() => setActivePinia(createPinia()))

const SESSION = `ses_${'1'.repeat(32)}`
const soft: BudgetItem = {
  level: 'person',
  subject: null,
  period: 'month',
  source: 'subject',
  limitUsd: 0.5,
  warnPercent: 80,
  isHard: false,
  usedUsd: 0.45,
  reservedUsd: 0,
  leftUsd: 0.05,
  isNear: true,
  isExhausted: false,
  mayChange: true,
}

async function show(...inForce: BudgetItem[]) {
  const budgets = vi.spyOn(rest, 'budgets').mockResolvedValue({ inForce, set: [] })
  const session = useSession()
  session.id = SESSION
  const page = mount(BudgetNear, { global: { plugins: [i18n] } })
  await flushPromises()
  return { page, session, budgets }
}

it.each([
  [{}, 'You, each month: Only $0.050 left of $0.50. Nothing is refused; this is only a warning.'],
  [{ isHard: true }, 'You, each month: Only $0.050 left of $0.50. What goes beyond is refused.'],
  [{ isHard: true, isExhausted: true }, 'You, each month: $0.50 are used up. Nothing is answered until it is raised.'],
])('says in words what is left and what happens then: %o', async (change, words) => {
  const { page } = await show({ ...soft, ...change })
  expect(page.findAll('li').map((line) => line.text())).toEqual([words])
})

it('shows nothing while no budget is near its end', async () => {
  const { page } = await show({ ...soft, isNear: false })
  expect(page.find('section').exists()).toBe(false)
})

it('looks again when the server warns, and comes again when its reader put it away and it stands otherwise', async () => {
  const { page, session, budgets } = await show(soft)
  await page.findAll('button').at(-1)?.trigger('click')
  expect(page.find('section').exists()).toBe(false)
  budgets.mockResolvedValue({ inForce: [{ ...soft, isExhausted: true }], set: [] })
  session.budgetWord = { code: 'budget_warning', text: '80 % are spent' }
  await flushPromises()
  expect(page.get('li').text()).toContain('$0.50 are used up')
})

it('says of a running answer how long it may become', async () => {
  const { page, session } = await show()
  session.budgetWord = { code: 'answer_limited', text: 'this answer may take 350 tokens at most' }
  await flushPromises()
  expect(page.find('section').exists()).toBe(false)
  const turn = { turn: 1, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: '', since: '2026-01-01T00:00:00Z' } as const
  session.conversation = withRunning(EMPTY, turn)
  await flushPromises()
  expect(page.get('li').text()).toBe('this answer may take 350 tokens at most')
})

it.each([
  [{ isHard: true }, ['Raise the budget', 'Hide']],
  [{ isHard: true, mayChange: false }, ['Hide']],
  [{}, ['Hide']],
])('offers to raise what may be raised: %o', async (change, buttons) => {
  const { page } = await show({ ...soft, ...change })
  expect(page.findAll('button').map((button) => button.text())).toEqual(buttons)
})
