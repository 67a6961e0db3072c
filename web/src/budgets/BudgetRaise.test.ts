import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { rest } from '@/wire/rest'
import type { BudgetItem } from '@/wire/restTypes'
import BudgetRaise from './BudgetRaise.vue'

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
