/** The tree by keyboard: one stop of the Tab key, arrows within. */
import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import type { FileItem } from './door'
import FileTree from './FileTree.vue'
import './texts.en.json'
import type { Line } from './useTree'

function line(path: string, kind: string, level: number, isOpen = false): Line {
  const item: FileItem = { name: path.split('/').at(-1) ?? '', path, kind, bytes: 3, modifiedAt: '2026-01-01T00:00:00Z' }
  return { key: path, row: { item, level, isOpen } }
}

const LINES: Line[] = [line('docs', 'folder', 1, true), line('docs/a.md', 'file', 2), line('zoo', 'folder', 1), line('b.txt', 'file', 1)]

async function press(tree: ReturnType<typeof mountTree>, key: string) {
  await tree.find('[role="tree"]').trigger('keydown', { key })
  await tree.vm.$nextTick()
}

function mountTree() {
  return mount(FileTree, { props: { lines: LINES, selected: null }, attachTo: document.body })
}

it('walks through its lines with one stop of the Tab key', async () => {
  const tree = mountTree()
  const stop = () => tree.findAll('[tabindex="0"]').map((one) => one.find('.name').text())
  expect(stop()).toEqual(['docs'])
  await press(tree, 'ArrowDown')
  expect(stop()).toEqual(['a.md'])
  await press(tree, 'ArrowLeft')
  expect(stop()).toEqual(['docs'])
  await press(tree, 'z')
  expect(stop()).toEqual(['zoo'])
  await press(tree, 'ArrowRight')
  await press(tree, 'End')
  await press(tree, 'Enter')
  expect(tree.emitted('open')).toEqual([['zoo']])
  expect(tree.emitted('choose')?.[0]).toEqual([(LINES[3]?.row as { item: FileItem }).item])
  expect(tree.findAll('[role="treeitem"]').map((one) => one.attributes('aria-level'))).toEqual(['1', '2', '1', '1'])
  expect(tree.findAll('[aria-expanded="true"]').length).toBe(1)
  tree.unmount()
})
