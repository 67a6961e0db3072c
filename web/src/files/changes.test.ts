/** What a call changed, its comparison, and the way back: only what was shown is undone. */
import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { RequestError } from '@/wire/request'
import CallChanges from './CallChanges.vue'
import { door, refreshChanges, type Change, type ChangedEntry } from './changes'
import FileHistory from './FileHistory.vue'
import UndoForm from './UndoForm.vue'

const file: ChangedEntry = { kind: 'file', mode: '644', bytes: 4, hasContent: true }

function step(number: number, more: Partial<Change> = {}): Change {
  return { number, at: '2026-01-01T00:00:00Z', calls: [], people: [], isLate: false, created: 0, modified: 1, deleted: 0, folders: 0, ...more }
}

const global = () => ({ plugins: [i18n] })

beforeEach(() => {
  vi.restoreAllMocks()
  setActivePinia(createPinia())
})

const BESIDE = ['call_0_0', 'call_1_0', 'call_1_1', 'call_9_9']

async function listed(changes: Change[]): Promise<void> {
  vi.spyOn(door, 'list').mockResolvedValue(changes)
  useSession().id = 'ses_1'
  await refreshChanges()
}

function button(view: ReturnType<typeof mount>, words: string) {
  const found = view.findAll('button').find((one) => one.text() === words)
  if (!found) throw new Error(`no button ${words} in ${view.text()}`)
  return found
}

it('shows what a call changed with a comparison of each file', async () => {
  await listed([step(2, { calls: ['call_1_0', 'call_1_1'] }), step(1, { calls: ['call_0_0'], modified: 0 })])
  vi.spyOn(door, 'details').mockResolvedValue({ ...step(2), total: 1, files: [{ path: 'a.txt', before: file, after: file }] })
  vi.spyOn(door, 'file').mockResolvedValue({ path: 'a.txt', before: { ...file, text: 'one\n' }, after: { ...file, mode: '600', text: 'two\n' } })
  const view = mount(CallChanges, { global: global(), props: { session: 'ses_1', callId: 'call_1_1', beside: BESIDE } })
  await flushPromises()
  expect(view.text()).toBe('1 file changed during 2 calls')
  await button(view, '1 file changed during 2 calls').trigger('click')
  await vi.dynamicImportSettled()
  await flushPromises()
  await view.find('[aria-label="Compare a.txt"]').trigger('click')
  await flushPromises()
  expect(view.find('.diff-removed').text()).toContain('one')
  expect(view.find('.diff-added').text()).toContain('two')
  expect(view.text()).toContain('mode 644 → 600')
  // A call above the last one of its step, one that changed nothing, and one that is not known say nothing.
  for (const callId of ['call_1_0', 'call_0_0', 'call_9_9']) {
    const silent = mount(CallChanges, { global: global(), props: { session: 'ses_1', callId, beside: BESIDE } })
    await flushPromises()
    expect(silent.text()).toBe('')
  }
})

it('undoes what it showed and tells what could not be brought back', async () => {
  await listed([])
  const files = [
    { path: 'a', before: file, after: file, isPossible: true },
    { path: 'b', before: file, after: null, isPossible: true },
    { path: 'c', before: file, after: file, isPossible: false },
  ]
  vi.spyOn(door, 'plan').mockResolvedValue({ number: 3, digest: 'd', total: 3, files })
  const undo = vi.spyOn(door, 'undo').mockResolvedValue({ number: 4, restored: 2, unrestored: [{ path: 'c', reason: 'its content is not kept' }] })
  const view = mount(UndoForm, { global: global(), props: { session: 'ses_1', number: 3 }, attachTo: document.body })
  await flushPromises()
  expect(view.findAll('li').map((line) => line.text())).toEqual(['a reverted', 'b deleted', 'c cannot be restored: its content was not kept'])
  await button(view, 'Undo these changes').trigger('click')
  await flushPromises()
  expect(undo).toHaveBeenCalledWith('ses_1', 3, 'd')
  expect(view.text()).toContain('Undone. 2 files are as they were before.')
  expect(view.find('li').text()).toContain('its content is not kept')
  view.unmount()
})

it('counts no folder as a file, in what changed and in what was undone', async () => {
  const folder: ChangedEntry = { kind: 'folder', mode: '755', bytes: 0, hasContent: false }
  await listed([step(3, { calls: ['c3'], created: 1, modified: 0, folders: 1 }), step(2, { calls: ['c2'], modified: 0, folders: 2 })])
  const words = (callId: string) => mount(CallChanges, { global: global(), props: { session: 'ses_1', callId, beside: [callId] } }).text()
  expect([words('c3'), words('c2')]).toEqual(['1 file changed', '2 folders changed'])

  const files = [
    { path: 'notes', before: folder, after: null, isPossible: true },
    { path: 'notes/one.txt', before: file, after: null, isPossible: true },
  ]
  vi.spyOn(door, 'plan').mockResolvedValue({ number: 3, digest: 'd', total: 2, files })
  vi.spyOn(door, 'undo').mockResolvedValue({ number: 4, restored: 2, unrestored: [] })
  const view = mount(UndoForm, { global: global(), props: { session: 'ses_1', number: 3 } })
  await flushPromises()
  expect(view.text()).toContain('This undoes the changes to 1 file.')
  await button(view, 'Undo these changes').trigger('click')
  await flushPromises()
  expect(view.text()).toContain('Undone. Deleted notes/one.txt.')
})

it('says why nothing is undone, and asks for no yes then', async () => {
  await listed([])
  vi.spyOn(door, 'plan').mockRejectedValue(new RequestError(409, { detail: 'calls run in this session' }))
  const view = mount(UndoForm, { global: global(), props: { session: 'ses_1', number: 3 } })
  await flushPromises()
  expect(view.find('[role=alert]').text()).toContain('calls run in this session')
  expect(view.text()).not.toContain('Undo these changes')
})

it('lists who changed what, the newest first', async () => {
  await listed([step(4, { people: ['usr_2'], undoes: 2 }), step(3, { people: ['usr_1'] }), step(2, { calls: ['c'], isLate: true }), step(1)])
  const view = mount(FileHistory, { global: global(), props: { session: 'ses_1' } })
  await flushPromises()
  expect(view.findAll('.who').map((who) => who.text())).toEqual(['Someone else: undo', 'Someone else', 'A call (noticed late)', 'Between calls'])
})
