// @vitest-environment happy-dom
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import type { ServerConfig } from '@/wire/restTypes'
import PackagePreview from './PackagePreview.vue'

let shown: VueWrapper | undefined
let answers: object[]
let asked: string[]

const named = { registry: 'npm', name: 'notes', with: [], extras: [], allowScripts: false }

async function look(args: string[], config: ServerConfig = { command: 'npx', args }) {
  shown = mount(PackagePreview, { props: { config }, global: { plugins: [i18n] } })
  await vi.advanceTimersByTimeAsync(0)
  await flushPromises()
  return shown
}

beforeEach(() => {
  answers = []
  asked = []
  vi.useFakeTimers()
  vi.stubGlobal('fetch', async (_address: string, { body }: { body: string }) => {
    asked.push(body)
    return Response.json(answers.shift())
  })
})
afterEach(() => {
  shown?.unmount()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('says what is installed, from where and how, before it is added', async () => {
  answers = [{ package: named, version: '1.2.3', summary: 'Keeps notes' }]
  const page = await look(['-y', 'notes'])
  expect(page.text()).toContain('Installs notes 1.2.3 from npm once, in a sandbox that reaches only the registry.')
  expect(page.text()).toContain('Keeps notes')
})

it('says of a bundle whether anything is fetched for it, and asks about scripts only then', async () => {
  const bundle = { sha256: 'ab'.repeat(32), values: {} }
  const config = { command: 'python3', args: ['/packages/bundle/a.py'], bundle }
  answers = [
    { package: { ...named, registry: 'bundle', name: bundle.sha256 }, version: '1.0' },
    { package: { ...named, registry: 'bundle', name: bundle.sha256, with: ['mcp>=1', 'httpx'] }, version: '2.0' },
  ]
  const page = await look(config.args, config)
  expect(page.text()).toContain('Unpacks version 1.0 of the bundle once, in a sandbox without a network.')
  expect(page.find('input[type=checkbox]').exists()).toBe(false)
  await page.setProps({ config: { ...config, args: [] } })
  await vi.advanceTimersByTimeAsync(400)
  await flushPromises()
  expect(page.text()).toContain('Installs what version 2.0 of the bundle asks for (mcp>=1, httpx) from PyPI once')
  await page.get('input[type=checkbox]').setValue(true)
  expect(page.emitted('allow')).toEqual([[true]])
})

it('says why something cannot be installed, and what helps', async () => {
  answers = [{ package: named, failure: { reason: 'no_such_package', text: 'npm has no package `notes`', remedy: 'check the name' } }]
  const page = await look(['-y', 'notes'])
  expect(page.get('[role=alert]').text()).toBe('npm has no package `notes`: check the name')
})

it('asks again once typing rests, and leaves scripts to a person', async () => {
  answers = [{ package: named, version: '1' }, { package: { ...named, name: 'other' }, version: '2' }]
  const page = await look(['notes'])
  await page.setProps({ config: { command: 'npx', args: ['oth'] } })
  await page.setProps({ config: { command: 'npx', args: ['other'] } })
  expect(asked).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(400)
  await flushPromises()
  expect(asked).toHaveLength(2)
  expect(asked[1]).toContain('other')
  expect(page.text()).toContain('Installs other 2')
  await page.get('input[type=checkbox]').setValue(true)
  expect(page.emitted('allow')).toEqual([[true]])
})
