/** What a call changes is compared with the file as it is now, and nothing of the new content is hidden by it. */
import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, expect, it, vi } from 'vitest'
import ArgumentView from '@/approval/arguments/ArgumentView.vue'
import { i18n } from '@/locales'
import { RequestError } from '@/wire/request'
import { door } from './door'
import FileBefore, { inWorkspace, MAX_BYTES } from './FileBefore.vue'

afterEach(() => vi.restoreAllMocks())

const bytes = (text: string) => new TextEncoder().encode(text)

async function card(session: string | null = 'ses_1', file: object = { exists: true, bytes: 8, isText: true, lines: 2 }) {
  const view = mount(ArgumentView, {
    global: { plugins: [i18n] },
    props: { name: 'write_file', args: { path: '/workspace/./notes/a.md', content: 'one\nthree\n' }, file: file as never, session },
  })
  await vi.dynamicImportSettled()
  await flushPromises()
  return view
}

it('shows what changes in the file as it is now, and the whole new content when asked', async () => {
  const head = vi.spyOn(door, 'head').mockResolvedValue(bytes('one\ntwo\n'))
  const view = await card()
  expect(head).toHaveBeenCalledWith('ses_1', 'notes/a.md', MAX_BYTES + 1)
  expect(view.find('.diff-removed').text()).toContain('two')
  expect(view.find('.diff-added').text()).toContain('three')
  await view.findAll('button').find((button) => button.text() === 'Show the whole new content')?.trigger('click')
  expect(view.find('.diff-new').text()).toBe('one\nthree')

  head.mockResolvedValue(bytes('one\nthree\n'))
  await view.findAll('button').find((button) => button.text() === 'Read the file again')?.trigger('click')
  await flushPromises()
  await view.findAll('button').find((button) => button.text() === 'Show what changes')?.trigger('click')
  expect(view.find('.diff-head').text()).toBe('No change')
})

it.each([
  ['a file that is too long', () => Promise.resolve(new Uint8Array(MAX_BYTES + 1)), 'it is longer than 1 MB'],
  ['a file that is no text', () => Promise.resolve(new Uint8Array([0xff, 0xfe])), 'it is no longer a text file'],
  ['a refusal', () => Promise.reject(new RequestError(404, { detail: 'there is no such file' })), 'there is no such file'],
  ['no answer', () => Promise.reject(new TypeError('no')), 'the server does not answer'],
])('shows the new content beside the reason with %s', async (_, answer, reason) => {
  vi.spyOn(door, 'head').mockImplementation(answer)
  const view = await card()
  expect(view.find('[role=status]').text()).toContain(reason)
  expect(view.find('.diff-new').text()).toBe('one\nthree')
})

it('reads nothing where nobody may, and where there is nothing to compare with', async () => {
  const head = vi.spyOn(door, 'head')
  for (const view of [await card(null), await card('ses_1', { exists: false, bytes: 0, isText: false })]) {
    expect(view.findComponent(FileBefore).exists()).toBe(false)
    expect(view.find('.diff-new').text()).toBe('one\nthree')
  }
  expect(head).not.toHaveBeenCalled()
})

it('names files as the door does', () => {
  expect(inWorkspace('/workspace/a//b/./c')).toBe('a/b/c')
  // What leads out is for the server to refuse.
  expect(inWorkspace('../etc/passwd')).toBe('../etc/passwd')
})
