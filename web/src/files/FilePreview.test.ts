/** What a file is shown as, and values as a table. */
import { mount } from '@vue/test-utils'
import { describe, expect, it } from 'vitest'
import { MAX_ROWS, parseTable } from './CsvTable.vue'
import type { FileItem } from './door'
import { hexOf, kindOf, textOf } from './FilePreview.vue'
import FileTree, { type Line } from './FileTree.vue'
import './texts.en.json'

const bytes = (text: string) => new TextEncoder().encode(text)

describe('the kind of a file', () => {
  it('follows its name and what its bytes are', () => {
    expect(kindOf('a.md', '# x')).toBe('markdown')
    expect(kindOf('a.HTML', '<p>')).toBe('page')
    expect(kindOf('a.svg', '<svg/>')).toBe('drawing')
    expect(kindOf('a.csv', 'a,b')).toBe('table')
    expect(kindOf('a.rs', 'fn')).toBe('text')
    expect(kindOf('a.rs', '')).toBe('empty')
    expect(kindOf('a.md', undefined)).toBe('binary')
    expect(kindOf('a.pdf', '%PDF-1.4', bytes('%PDF-1.4'))).toBe('pdf')
    expect(kindOf('a.txt', undefined, bytes('%PDF-1.7'))).toBe('pdf')
  })

  it('takes for text what is UTF-8, also where the last character is cut', () => {
    const cut = bytes('aż').subarray(0, 2)
    expect(textOf(cut, false)).toBe('a')
    expect(textOf(cut, true)).toBe(undefined)
    expect(textOf(new Uint8Array([97, 0]), true)).toBe(undefined)
  })

  it('shows bytes sixteen a line', () => {
    expect(hexOf(bytes('0123456789abcdef\n'))).toBe(
      '00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n' + `00000010  0a${' '.repeat(45)}  .`,
    )
  })
})

describe('a table of values', () => {
  it('reads quotes, separators in them and both ends of lines', () => {
    const table = parseTable('a,b\r\n"x, ""y""",2\n"two\nlines",\n', ',')
    expect(table).toEqual({ head: ['a', 'b'], rows: [['x, "y"', '2'], ['two\nlines', '']], isCut: false })
    expect(parseTable('a\tb', '\t').head).toEqual(['a', 'b'])
    expect(parseTable('', ',')).toEqual({ head: [], rows: [], isCut: false })
  })

  it('is cut where there are more rows than are shown', () => {
    const table = parseTable(`h\n${'x\n'.repeat(MAX_ROWS + 5)}`, ',')
    expect([table.rows.length, table.isCut]).toEqual([MAX_ROWS, true])
  })
})

describe('the tree', () => {
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
})
