// @vitest-environment happy-dom
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { door } from '@/rules/door'
import { SESSION } from '@/rules/testing'
import { RequestError } from '@/wire/request'
import AllowHost from './AllowHost.vue'

function show() {
  return mount(AllowHost, { props: { session: SESSION }, global: { plugins: [i18n] } })
}

beforeEach(() => vi.restoreAllMocks())

it('lets commands of the session reach a host that is written down', async () => {
  const give = vi.spyOn(door, 'give').mockResolvedValue({} as never)
  const shown = show()
  const input = shown.get('input')
  expect(shown.get('label').attributes('for')).toBe(input.attributes('id'))
  await shown.get('form').trigger('submit')
  expect(give).not.toHaveBeenCalled()
  await input.setValue(' pypi.org ')
  await shown.get('form').trigger('submit')
  await flushPromises()
  expect(give).toHaveBeenCalledWith({ effect: 'allow', scope: 'session', session: SESSION, network: ['pypi.org'] })
  expect(shown.emitted('given')).toHaveLength(1)
  expect((input.element as HTMLInputElement).value).toBe('')
})

it('says what is wrong and keeps what was written', async () => {
  vi.spyOn(door, 'give').mockRejectedValue(new RequestError(400, { detail: '`*`: it is too wide' } as never))
  const shown = show()
  await shown.get('input').setValue('*')
  await shown.get('form').trigger('submit')
  await flushPromises()
  expect(shown.get('[role=alert]').text()).toContain('too wide')
  expect((shown.get('input').element as HTMLInputElement).value).toBe('*')
  expect(shown.get('input').attributes('aria-describedby')).toBe(shown.get('[role=alert]').attributes('id'))
})
