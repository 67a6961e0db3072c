// @vitest-environment happy-dom
import { flushPromises, mount } from '@vue/test-utils'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { rest } from '@/wire/rest'
import type { ServerItem } from '@/wire/restTypes'
import RefusedHosts from './RefusedHosts.vue'

const AT = '2026-11-26T04:00:00.000Z'
const refused = { host: 'api.github.com', port: 443, entry: 'api.github.com', reason: 'it is not among the hosts', at: AT, count: 3 }
const address = { host: '10.0.0.1', port: 443, reason: 'it is an address, and hosts are reached by their names', at: AT, count: 1 }

function server(more: Partial<ServerItem>): ServerItem {
  return { name: 'tracker', source: 'tenant', refusedHosts: [refused, address], ...more } as unknown as ServerItem
}

function show(item: ServerItem, mayChange: boolean) {
  return mount(RefusedHosts, { props: { item, mayChange }, global: { plugins: [i18n] } })
}

beforeEach(() => vi.restoreAllMocks())

it('allows a host beside those that are allowed by now', async () => {
  const now = server({ config: { command: 'x', network: ['a.example'] } as unknown as ServerItem['config'] })
  vi.spyOn(rest, 'server').mockResolvedValue(now)
  const change = vi.spyOn(rest, 'changeServer').mockResolvedValue(now)
  const shown = show(server({}), true)
  expect(shown.findAll('button')).toHaveLength(1)
  const button = shown.get('button')
  expect(button.attributes('aria-label')).toBe('Allow api.github.com for this server')
  await button.trigger('click')
  await flushPromises()
  expect(change).toHaveBeenCalledWith('tracker', { network: ['a.example', 'api.github.com'] })
  expect(shown.emitted('changed')).toHaveLength(1)
})

it('says what went wrong and lets the person try again', async () => {
  vi.spyOn(rest, 'server').mockRejectedValue(new Error('away'))
  const shown = show(server({}), true)
  await shown.get('button').trigger('click')
  await flushPromises()
  expect(shown.get('[role=alert]').text()).toContain('It was not allowed')
  expect(shown.get('button').attributes('disabled')).toBeUndefined()
})

it('shows each host with its reason, and no button where none would help', () => {
  const text = show(server({}), false).text()
  expect(text).toContain('api.github.com:443')
  expect(text).toContain('3 times')
  expect(text).toContain('it is an address')
  expect(text).toContain('in network')
  expect(show(server({ source: 'bundled' }), false).text()).toContain('in sandbox.network')
  expect(show(server({}), false).find('button').exists()).toBe(false)
})

it('is not there while nothing was refused', () => {
  expect(show(server({ refusedHosts: undefined }), true).text()).toBe('')
})
