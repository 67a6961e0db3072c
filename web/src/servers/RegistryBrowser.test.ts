import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import RegistryBrowser from './RegistryBrowser.vue'

const question = (key: string, more: object = {}) => ({
  key, label: key, isRequired: false, isSecret: false, format: 'string', choices: [], isRepeated: false, ...more,
})

const weather = {
  name: 'io.github.me/weather',
  title: 'Wea\u202ether',
  description: 'Tells it',
  version: '1.0.2',
  isDeprecated: true,
  ways: [
    { id: 'package-0', kind: 'nuget', target: 'Weather', questions: [], lack: 'it needs .NET' },
    { id: 'package-1', kind: 'npm', target: '@me/weather@1.0.2', questions: [
      question('env.KEY', { isSecret: true, isRequired: true, description: 'From the site.' }),
      question('argument.0', { isSecret: true }),
      question('env.MODE', { choices: ['a', 'b'], default: 'a' }),
    ] },
  ],
}

const mounted = () => mount(RegistryBrowser, { global: { plugins: [i18n] }, attachTo: document.body })

beforeEach(() => vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  document.body.innerHTML = ''
})

it('asks once typing rests, and shows what is hidden in names', async () => {
  const ask = vi.spyOn(rest, 'publishedServers').mockResolvedValue({ items: [weather], nextCursor: 'next' } as never)
  const page = mounted()
  await flushPromises()
  expect(ask).toHaveBeenLastCalledWith('', null)
  expect(page.text()).toContain('⟦U+202E⟧')
  expect(page.text()).toContain('Deprecated by its publisher')
  await page.get('input').setValue('we')
  await page.get('input').setValue('wea')
  expect(ask).toHaveBeenCalledTimes(1)
  await vi.advanceTimersByTimeAsync(300)
  expect(ask).toHaveBeenLastCalledWith('wea', null)
  await page.findAll('button').find((button) => button.text() === 'More')?.trigger('click')
  expect(ask).toHaveBeenLastCalledWith('wea', 'next')
  await flushPromises()
  expect(page.findAll('li')).toHaveLength(2)
})

it('hands on the entry that the answers make, and says at their fields what is wrong', async () => {
  vi.spyOn(rest, 'publishedServers').mockResolvedValue({ items: [weather], nextCursor: null } as never)
  const made = { name: 'weather', config: { command: 'npx' }, secrets: { KEY: 'k' } }
  const entry = vi
    .spyOn(rest, 'publishedEntry')
    .mockRejectedValueOnce(
      new RequestError(400, { type: 'about:blank', title: 'x', status: 400, detail: 'Some values are not right.', code: 'invalid_arguments', errors: [{ field: 'values.env.KEY', message: 'the server needs this value' }] } as never),
    )
    .mockResolvedValueOnce(made)
  const page = mounted()
  await flushPromises()
  await page.get('button[aria-expanded="false"]').trigger('click')
  expect(page.text()).toContain('cannot be added, it needs .NET')
  expect(page.text()).toContain('From the site. Kept sealed')
  expect(page.text()).toContain('Stored in the entry as plain text.')
  expect(page.get('input[name="env.KEY"]').attributes('type')).toBe('password')

  const go = () => page.findAll('button').find((button) => button.text() === 'Continue')?.trigger('click')
  await go()
  await flushPromises()
  expect(page.text()).toContain('the server needs this value')
  await page.get('input[name="env.KEY"]').setValue('k')
  await page.get('select').setValue('b')
  await go()
  await flushPromises()
  expect(entry).toHaveBeenLastCalledWith('io.github.me/weather', '1.0.2', 'package-1', { 'env.KEY': 'k', 'env.MODE': 'b' })
  expect(page.emitted('choose')).toEqual([[made]])
})

it('says why nothing comes, and tries again', async () => {
  const ask = vi.spyOn(rest, 'publishedServers').mockRejectedValueOnce(
    new RequestError(503, { type: 'about:blank', title: 'x', status: 503, detail: 'The MCP registry answered 500.', code: 'registry_unavailable' } as never),
  )
  const page = mounted()
  await flushPromises()
  expect(page.get('[role="alert"]').text()).toContain('answered 500')
  ask.mockResolvedValueOnce({ items: [], nextCursor: null } as never)
  await page.get('[role="alert"] button').trigger('click')
  await flushPromises()
  expect(page.get('[role="status"]').text()).toBe('No server matches.')
})

it('says in its own words that the registry cannot be reached, and keeps the error for who looks', async () => {
  vi.spyOn(rest, 'publishedServers').mockRejectedValue(new RequestError(502, { code: 'registry_unavailable', detail: 'dns error: failed to lookup address' } as never))
  const page = mounted()
  await flushPromises()
  expect(page.get('.problem').text()).toContain('The registry of MCP servers cannot be reached.')
  expect(page.get('.problem').text()).not.toContain('dns error')
  expect(page.get('details').text()).toContain('dns error')
})
