import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { RequestError } from '@/wire/request'
import BundleDrop from './BundleDrop.vue'
import { bundles, type Bundle, type BundleValue } from './packages'

const value = (key: string, more: Partial<BundleValue> = {}): BundleValue => ({
  key, title: key, description: '', kind: 'string', isRequired: false, isSecret: false, isRepeated: false, ...more,
})

const notes: Bundle = {
  sha256: 'ab'.repeat(32), bytes: 10, files: 2, unpackedBytes: 2000,
  name: 'notes', title: 'No\u202etes', version: '2.0.0', description: 'Keeps notes.', author: 'Ada',
  kind: 'node', command: ['node', '/packages/bundle/a.js'], env: {}, tools: [{ name: 'keep', description: 'Keeps' }], prompts: [], hasMoreTools: false,
  values: [
    value('who', { isRequired: true }),
    value('api_key', { isSecret: true }),
    value('limit', { kind: 'number', min: 1, max: 9 }),
    value('folders', { kind: 'directory', isRepeated: true, default: '/workspace' }),
    value('debug', { kind: 'boolean', default: 'false' }),
  ],
  usedBy: [],
}
const used = { server: 'it', version: '1.0.0', sha256: 'cd'.repeat(32), values: { who: 'Ada', gone: 'x' } }

const dropped = new File(['x'], 'notes.mcpb')
const mounted = () => mount(BundleDrop, { props: { dropped }, global: { plugins: [i18n] }, attachTo: document.body })

afterEach(() => {
  vi.restoreAllMocks()
  document.body.innerHTML = ''
})

it('shows what a bundle is and runs, and hands on the entry that the answers make', async () => {
  vi.spyOn(bundles, 'upload').mockResolvedValue(notes)
  const made = { name: 'notes', config: { command: 'node' }, secrets: {} }
  const entry = vi
    .spyOn(bundles, 'entry')
    .mockRejectedValueOnce(new RequestError(400, { detail: 'wrong', errors: [{ field: 'values.who', message: 'the server needs this value' }] }))
    .mockResolvedValueOnce(made)
  const page = mounted()
  await flushPromises()
  expect(page.text()).toContain('⟦U+202E⟧')
  expect(page.text()).toContain('node /packages/bundle/a.js')
  expect(page.text()).toContain(notes.sha256)
  expect(page.text()).toContain('From 1 to 9.')
  expect(page.text()).toContain('A path below /workspace')
  expect(page.get('[name="bundle-api_key"]').attributes('type')).toBe('password')
  const go = page.findAll('button').find((button) => button.text() === 'Continue')
  await go?.trigger('click')
  await flushPromises()
  expect(page.text()).toContain('the server needs this value')
  await page.get('[name="bundle-who"]').setValue('Ada')
  await page.get('[name="bundle-network"]').setValue('api.test\n')
  await go?.trigger('click')
  await flushPromises()
  expect(entry).toHaveBeenLastCalledWith(notes.sha256, { values: { who: 'Ada' }, network: ['api.test'] })
  expect(page.emitted('choose')).toEqual([[made]])
})

it('says what is installed beside a bundle, where something is', async () => {
  vi.spyOn(bundles, 'upload').mockResolvedValueOnce({ ...notes, dependencies: ['mcp>=1.2', 'ht\u202etpx'] }).mockResolvedValueOnce(notes)
  const page = mounted()
  await flushPromises()
  expect(page.text()).toContain('Installed with it, from PyPI')
  expect(page.text()).toContain('mcp>=1.2, ht⟦U+202E⟧tpx')
  const other = mounted()
  await flushPromises()
  expect(other.text()).not.toContain('Installed beside it')
})

it('says everything that is wrong with a file', async () => {
  const errors = [{ field: 'file', message: 'two files have this name' }, { field: 'manifest.name', message: 'it is missing' }]
  vi.spyOn(bundles, 'upload').mockRejectedValue(new RequestError(400, { detail: 'wrong', errors }))
  const page = mounted()
  await flushPromises()
  const said = page.get('[role="alert"]').text()
  expect(said).toContain('notes.mcpb cannot be added: two files have this name')
  expect(said).toContain('manifest.name: it is missing')
})

it('replaces an older one with the answers that are known, and asks for its secrets', async () => {
  vi.spyOn(bundles, 'upload').mockResolvedValue({ ...notes, usedBy: [used] })
  const replace = vi.spyOn(bundles, 'replace').mockResolvedValue(notes)
  const page = mounted()
  await flushPromises()
  expect(page.text()).toContain('Now: version 1.0.0')
  expect((page.get('[name="bundle-who"]').element as HTMLInputElement).value).toBe('Ada')
  await page.get('[name="bundle-api_key"]').setValue('k')
  await page.findAll('button').find((button) => button.text() === 'Replace')?.trigger('click')
  await flushPromises()
  expect(replace).toHaveBeenCalledWith(notes.sha256, { values: { who: 'Ada', api_key: 'k' }, server: 'it', seen: used.sha256 })
  expect(page.emitted('replaced')).toEqual([['it']])
})
