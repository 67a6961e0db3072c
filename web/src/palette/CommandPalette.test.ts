import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { isPaletteOpen } from '@/stores/panels'
import { useSessions } from '@/stores/sessions'
import { rest } from '@/wire/rest'
import type { SessionItem } from '@/wire/restTypes'
import CommandPalette from './CommandPalette.vue'

const session = (id: string, title: string, ...tags: string[]): SessionItem => ({ id, title, createdAt: '2026-11-23T10:00:00Z', updatedAt: '2026-11-23T10:00:00Z', state: 'idle', waiting: 0, version: 1, isPinned: false, isArchived: false, tags })

let palette: VueWrapper

beforeEach(async () => {
  setActivePinia(createPinia())
  for (const name of ['models', 'servers', 'search'] as const) vi.spyOn(rest, name).mockRejectedValue(new Error('not now'))
  vi.stubGlobal('fetch', () => Promise.reject(new Error('not now')))
  useSessions().items = [session('ses_1', 'Name a bird of the sea'), session('ses_2', 'Sort the invoices', 'quarterly accounts')]
  isPaletteOpen.value = true
  palette = mount(CommandPalette, { attachTo: document.body, global: { plugins: [i18n, createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })] } })
  await flushPromises()
  await vi.waitFor(() => expect(document.querySelectorAll('[role="option"]').length).toBeGreaterThan(8))
})
afterEach(() => {
  palette.unmount()
  isPaletteOpen.value = false
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

async function found(text: string): Promise<string[]> {
  const field = document.querySelector<HTMLInputElement>('input[role="combobox"]')
  if (!field) throw new Error('the palette has no field')
  field.value = text
  field.dispatchEvent(new Event('input', { bubbles: true }))
  let lines: string[] = []
  await vi.waitFor(() => {
    lines = [...document.querySelectorAll('[role="option"]')].map((option) => option.textContent?.trim() ?? '')
    expect(lines.length).toBeLessThan(8)
  })
  return lines
}

it.each([
  ['its title', 'brd of th sea', 'Name a bird of the sea'],
  ['some of its words', 'add servr', 'Add an MCP server'],
  ['what is said beside it', 'quartrly acounts', 'Sort the invoices'],
  ['what is in it, though that is not said', 'densty', 'Settings: Appearance'],
])('finds an entry by %s, also where letters are missing', async (_, text, label) => {
  expect(await found(text)).toContainEqual(expect.stringContaining(label))
})

it('stays open where it was opened again before its end was told', async () => {
  isPaletteOpen.value = false
  isPaletteOpen.value = true
  document.querySelector('dialog')?.dispatchEvent(new Event('close'))
  await flushPromises()
  expect(isPaletteOpen.value).toBe(true)
})
