// @vitest-environment happy-dom
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import PackagePreview from './PackagePreview.vue'

let shown: VueWrapper | undefined
let answers: object[]
let asked: string[]

const named = { registry: 'npm', name: 'notes', with: [], extras: [], allowScripts: false }

async function look(args: string[]) {
  shown = mount(PackagePreview, { props: { config: { command: 'npx', args } }, global: { plugins: [i18n] } })
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
