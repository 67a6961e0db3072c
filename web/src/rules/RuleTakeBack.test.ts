import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { defineComponent, h } from 'vue'
import { provideRuleSession } from './ofSession'
import RuleTakeBack from './RuleTakeBack.vue'
import { refused, SESSION, spyOnDoor } from './testing'

let doors: ReturnType<typeof spyOnDoor>

beforeEach(() => {
  doors = spyOnDoor()
})
afterEach(() => vi.restoreAllMocks())

/** Two rows of one rule, in a session. */
function rows() {
  const page = defineComponent({
    setup() {
      provideRuleSession(() => SESSION)
      return () => [h(RuleTakeBack, { id: 'rul_a', about: 'Write a' }), h(RuleTakeBack, { id: 'rul_a', about: 'Write b' })]
    },
  })
  return mount(page)
}

it('takes back a rule of the session, on all rows that it decided', async () => {
  const page = rows()
  expect(page.findAll('button').map((button) => button.attributes('aria-label'))).toEqual(['Take back the rule: Write a', 'Take back the rule: Write b'])
  await page.get('button').trigger('click')
  await flushPromises()
  expect(doors.takeBack).toHaveBeenCalledExactlyOnceWith('rul_a', SESSION)
  expect(page.findAll('button')).toHaveLength(0)
  expect(page.text()).toBe('Rule removed. The next call asks again.'.repeat(2))
})

it('takes back a rule that outlasts the session', async () => {
  doors.takeBack.mockRejectedValueOnce(refused(404, 'not_found', 'there is no such rule'))
  const page = rows()
  await page.get('button').trigger('click')
  await flushPromises()
  expect(doors.takeBack.mock.calls).toEqual([['rul_a', SESSION], ['rul_a']])
  expect(page.findAll('button')).toHaveLength(0)
})

it('says that somebody took it back before, or why it stays', async () => {
  doors.takeBack.mockRejectedValueOnce(refused(404, 'not_found', 'no')).mockRejectedValueOnce(refused(403, 'not_allowed', "only admins take the tenant's rules back"))
  const page = rows()
  await page.get('button').trigger('click')
  await flushPromises()
  expect(page.text()).toContain("Not removed: only admins take the tenant's rules back")
  doors.takeBack.mockRejectedValue(refused(404, 'not_found', 'no'))
  await page.get('button').trigger('click')
  await flushPromises()
  expect(page.text()).toContain('It was already removed.')
  expect(page.findAll('button')).toHaveLength(0)
})
