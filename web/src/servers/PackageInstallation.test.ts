// @vitest-environment happy-dom
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import type { PackageInstallation as Told } from '@/wire/restTypes'
import PackageInstallation from './PackageInstallation.vue'

const BEGAN = '2026-01-01T00:00:00Z'
const INSTALLED = { version: '1.0.0', content: 'a'.repeat(64), packages: 12, skippedScripts: [] }

let shown: VueWrapper | undefined
/** What is answered from now on, and what was asked. */
let told: Told
let asked: string[]

function answer(state: Told['state'], more: Partial<Told> = {}) {
  told = { state, package: { registry: 'npm', name: 'notes', with: [], extras: [], allowScripts: false }, phases: [], log: [], ...more } as Told
}

async function look(mayChange = true) {
  shown = mount(PackageInstallation, { props: { server: 'notes', mayChange }, global: { plugins: [i18n] } })
  await flushPromises()
  return shown
}

const button = (page: VueWrapper, name: string) => page.findAll('button').find((it) => it.text() === name)

beforeEach(() => {
  asked = []
  vi.useFakeTimers()
  vi.stubGlobal('fetch', async (address: string, { method, body }: { method: string; body?: string }) => {
    asked.push(`${method} ${new URL(address, 'http://sepal.test').pathname.replace('/api/mcp/notes/', '')}${body ?? ''}`)
    return Response.json(told)
  })
})
afterEach(() => {
  shown?.unmount()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('shows each phase while it installs, and says when it is there', async () => {
  answer('downloading', {
    phases: [
      { name: 'resolving', beganAt: BEGAN, ms: 900 },
      { name: 'downloading', beganAt: BEGAN },
    ],
    log: ['npm http fetch GET 200'],
  })
  const page = await look()
  const rows = page.findAll('li').map((row) => row.text())
  expect(rows[0]).toContain('Finding out which versions it takes')
  expect(rows[1]).toContain('Downloading')
  expect(page.get('[role=status]').text()).toBe('Downloading')
  expect(page.find('details').attributes('open')).toBeUndefined()

  answer('ready', { installed: INSTALLED })
  await vi.advanceTimersByTimeAsync(1000)
  await flushPromises()
  expect(page.text()).toContain('notes 1.0.0, with 12 packages in all, pinned as aaaaaaaaaaaa')
  expect(page.emitted('ready')).toHaveLength(1)
  const before = asked.length
  await vi.advanceTimersByTimeAsync(5000)
  expect(asked).toHaveLength(before)
})

it('shows the reason, what helps and the last lines of a failure, and tries again', async () => {
  answer('failed', {
    failure: { reason: 'no_such_package', text: 'npm has no package `notes`', remedy: 'check the name of the package' },
    phases: [{ name: 'resolving', beganAt: BEGAN, ms: 100, error: 'npm has no package `notes`' }],
    log: ['npm error code E404'],
  })
  const page = await look()
  expect(page.get('[role=alert]').text()).toBe('npm has no package `notes`: check the name of the package')
  expect(page.get('details').attributes('open')).toBeDefined()
  expect(page.get('pre').text()).toBe('npm error code E404')
  answer('waiting')
  await button(page, 'Try again')?.trigger('click')
  await flushPromises()
  expect(asked.at(-1)).toBe('POST installation')
  expect(button(page, 'Stop installing')).toBeDefined()
})

it('shows what a newer version changes, and takes exactly what was shown', async () => {
  const tool = (name: string, description: string) => ({ name, description, schema: { type: 'object' } })
  const newer = {
    version: '2.0.0',
    content: 'b'.repeat(64),
    added: [tool('more', 'Comes')],
    removed: [tool('less', 'Goes')],
    changed: [{ before: tool('edit', 'Edits one'), after: tool('edit', 'Edits all') }],
  }
  answer('ready', { installed: INSTALLED, newer } as unknown as Partial<Told>)
  const page = await look()
  for (const words of ['Version 2.0.0 is there', 'New tools', 'Comes', 'Tools that go', 'Goes', 'Edits one', 'Edits all']) {
    expect(page.text()).toContain(words)
  }
  answer('ready', { installed: { ...INSTALLED, version: '2.0.0' } })
  await button(page, 'Use version 2.0.0')?.trigger('click')
  await flushPromises()
  expect(asked.at(-1)).toBe(`POST installation/accept${JSON.stringify({ content: newer.content })}`)
  expect(page.text()).toContain('Sessions use version 2.0.0 from their next call on.')
  expect(button(page, 'Use version 2.0.0')).toBeUndefined()
})

it('says that nothing is newer, once it has looked', async () => {
  answer('ready', { installed: INSTALLED })
  const page = await look()
  answer('resolving', { installed: INSTALLED })
  await button(page, 'Look for a newer version')?.trigger('click')
  await flushPromises()
  expect(asked.at(-1)).toBe('POST installation/check')
  expect(page.text()).not.toContain('There is no newer version.')
  answer('ready', { installed: INSTALLED })
  await vi.advanceTimersByTimeAsync(1000)
  await flushPromises()
  expect(page.text()).toContain('There is no newer version.')
})

it('offers nothing to those who may not change it', async () => {
  answer('ready', { installed: INSTALLED })
  const page = await look(false)
  expect(page.findAll('button')).toHaveLength(0)
})
