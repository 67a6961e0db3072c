import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { door } from '@/groups/groups'
import { i18n } from '@/locales'
import { EMPTY } from '@/session/conversation/conversation'
import { withRunning } from '@/session/conversation/streaming'
import { useSession } from '@/session/store/session'
import { rest } from '@/wire/rest'
import type { BudgetItem } from '@/wire/restTypes'
import BudgetForm from './BudgetForm.vue'
import BudgetNear from './BudgetNear.vue'
import BudgetRaise from './BudgetRaise.vue'
import { dollarsOf, leftWords, nameOf, shareOf, tightestOf } from './budgets'

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
  [{}, 'You, each month: Only $0.050 left of $0.50. This is only a warning; nothing is refused.'],
  [{ isHard: true }, 'You, each month: Only $0.050 left of $0.50. Anything beyond it is refused.'],
  [{ isHard: true, isExhausted: true }, 'You, each month: $0.50 used up. No model answers until it is raised.'],
])('says in words what is left and what happens then: %o', async (change, words) => {
  const { page } = await show({ ...soft, ...change })
  expect(page.findAll('li').map((line) => line.text())).toEqual([words])
})

it('sets a budget of a group, for each member or for all of them together', async () => {
  vi.spyOn(door, 'groups').mockResolvedValue({ items: [{ id: 'grp_1', name: 'Research', description: '', members: 2, createdAt: '2026-11-01T12:00:00Z' }], nextCursor: null })
  const form = mount(BudgetForm, { props: { people: [{ id: 'usr_1', name: 'ana' }] as never }, global: { plugins: [i18n] } })
  await flushPromises()
  const set = async (words: string) => {
    const option = form.findAll('option').find((one) => one.text() === words)
    await form.get('select').setValue(option?.attributes('value'))
    await form.get('input[inputmode=decimal]').setValue('5')
    await form.trigger('submit')
    return form.emitted<unknown[]>('set')?.at(-1)?.[0]
  }
  expect(await set('Each member of Research')).toMatchObject({ level: 'group_each', subject: 'grp_1', period: 'month', limitUsd: 5 })
  expect(await set('All members of Research together')).toMatchObject({ level: 'group_pooled', subject: 'grp_1' })
  expect(await set('ana')).toMatchObject({ level: 'person', subject: 'usr_1' })
  expect(await set('Each session')).toMatchObject({ level: 'session', subject: null, period: 'whole' })
})

it('reads the budgets of a new session again once something was counted', async () => {
  const { session, budgets } = await show(soft)
  const usage = { totalCost: 0, budget: null, context: { used: 1, window: null }, seq: 1 }
  session.usage = { ...usage, totalTokens: 0 }
  await flushPromises()
  const before = budgets.mock.calls.length
  session.usage = { ...usage, totalTokens: 18 }
  await flushPromises()
  expect(budgets.mock.calls.length).toBe(before + 1)
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
  expect(page.get('li').text()).toContain('$0.50 used up')
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

describe('raising a budget', () => {
  beforeEach(() => setActivePinia(createPinia()))

  const SESSION = `ses_${'1'.repeat(32)}`
  const own: BudgetItem = {
    level: 'own',
    subject: SESSION,
    period: 'whole',
    source: 'subject',
    limitUsd: 0.5,
    warnPercent: 80,
    isHard: true,
    usedUsd: 0.49,
    reservedUsd: 0,
    leftUsd: 0.01,
    isNear: true,
    isExhausted: false,
    mayChange: true,
  }
  const tenant: BudgetItem = { ...own, level: 'tenant', subject: null, period: 'month', mayChange: false, leftUsd: null, usedUsd: null, isExhausted: true }

  async function show(...inForce: BudgetItem[]) {
    vi.spyOn(rest, 'budgets').mockResolvedValue({ inForce, set: [] })
    const set = vi.spyOn(rest, 'setBudget').mockResolvedValue(undefined)
    useSession().id = SESSION
    const page = mount(BudgetRaise, { global: { plugins: [i18n] } })
    await flushPromises()
    return { page, set }
  }

  it('raises in place what the reader may raise, to twice as much unless they say more', async () => {
    const { page, set } = await show(own, tenant)
    const forms = page.findAll('form')
    expect(forms.map((form) => form.findAll('button').length)).toEqual([1, 0])
    expect(forms[1]?.text()).toContain('An admin can raise it.')
    await forms[0]?.trigger('submit')
    await flushPromises()
    const change = { level: 'own', period: 'whole', subject: SESSION, limitUsd: 1, warnPercent: 80, isHard: true }
    expect(set).toHaveBeenLastCalledWith(change)
    await forms[0]?.get('input').setValue('2,5')
    await forms[0]?.trigger('submit')
    await flushPromises()
    expect(set).toHaveBeenLastCalledWith({ ...change, limitUsd: 2.5 })
    expect(rest.budgets).toHaveBeenLastCalledWith(SESSION)
  })

  it('says what is no amount, and sets nothing', async () => {
    const { page, set } = await show(own)
    set.mockClear()
    await page.get('input').setValue('much')
    await page.get('form').trigger('submit')
    await flushPromises()
    expect(page.get('[role=alert]').text()).toBe('Type an amount from 0 to 1000000.')
    expect(set).not.toHaveBeenCalled()
  })

  it('shows nothing where no hard budget is near its end', async () => {
    const { page } = await show({ ...own, isNear: false }, { ...tenant, isHard: false })
    expect(page.find('form').exists()).toBe(false)
  })
})

describe('the words', () => {
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
    [{ level: 'tenant', period: 'day' }, 'Everyone here, each day'],
    [{ source: 'each' }, 'Each person, each month'],
    [{ name: 'ana', subject: 'usr_1' }, 'ana, each month'],
    [{ level: 'own', period: 'whole' }, 'This session, set by you'],
    [{ level: 'session', period: 'whole', source: 'settings' }, 'This session'],
    [{ level: 'turn', period: 'whole', source: 'settings' }, 'This turn'],
    [{ level: 'assistant', period: 'whole', source: 'settings' }, 'This session, set by the assistant'],
    [{ level: 'group_each', name: 'Research', subject: 'grp_1' }, 'Each member of Research, each month'],
    [{ level: 'group_pooled', name: 'Research', subject: 'grp_1', period: 'day' }, 'All members of Research, each day'],
  ] as const)('names whose budget it is: %o', (change, name) => {
    expect(nameOf(budget(change))).toBe(name)
  })

  it('says what is left, or only the limit where the sum is for others', () => {
    expect(leftWords(budget({}))).toBe('$6.00 left of $10.00')
    expect(leftWords(budget({ isExhausted: true }))).toBe('$10.00 used up')
    expect(leftWords(budget({ leftUsd: 1, isNear: true }))).toBe('Only $1.00 left of $10.00')
    expect(leftWords(budget({ leftUsd: null, isNear: true }))).toBe('Limit $10.00, nearly reached')
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
})
