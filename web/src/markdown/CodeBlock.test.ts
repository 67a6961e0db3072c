import { mount, flushPromises, type VueWrapper } from '@vue/test-utils'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Highlighter, HIGHLIGHTER } from '@/highlight/highlighter'
import { MAX_HIGHLIGHTED, MAX_PIECES } from '@/highlight/kinds'
import { QuickWorkerStandIn, WorkerStandIn } from '@/highlight/testing'
import { loadMarkdown } from './blocks'
import MarkdownText from './MarkdownText.vue'
import { ALLOWED_ATTRIBUTES, ALLOWED_CLASS, ALLOWED_TAGS, PAYLOADS } from './payloads'

beforeAll(loadMarkdown)

const copied = vi.hoisted(() => vi.fn<(text: string) => Promise<boolean>>(async () => true))
vi.mock('@/browser/clipboard', () => ({ copyText: copied }))

const SOURCE = 'fn main() {\n    let a = "<b>&amp;\u202E";\t// c\n}'
const RUST = '```rust\n' + SOURCE + '\n```'

function render(text: string, streaming = false, worker: WorkerStandIn = new QuickWorkerStandIn()): VueWrapper {
  const highlighter = new Highlighter(() => worker.asWorker())
  return mount(MarkdownText, { props: { text, streaming }, global: { provide: { [HIGHLIGHTER as symbol]: highlighter } } })
}

function colours(wrapper: VueWrapper): string[] {
  return wrapper.findAll('code span').map((span) => `${span.classes().join(' ')} ${span.text()}`)
}

describe('a block of code', () => {
  it('is plain first, then in colours, with the same text', async () => {
    const wrapper = render(RUST)
    expect(wrapper.get('code').element.textContent).toBe(SOURCE)
    expect(colours(wrapper)).toEqual([])
    await flushPromises()
    expect(colours(wrapper)).toContain('md-code-keyword fn')
    expect(colours(wrapper)).toContain('md-code-aside // c')
    expect(wrapper.get('code').element.textContent).toBe(SOURCE)
  })

  it('is copied exactly', async () => {
    const wrapper = render(RUST)
    await flushPromises()
    await wrapper.get('.md-copy').trigger('click')
    expect(copied).toHaveBeenLastCalledWith(SOURCE)
  })

  it.each([
    ['in an unknown language', '```klingon\nlet a\n```'],
    ['without a language', '```\nlet a\n```'],
    ['indented', 'x\n\n    let a = 1'],
    ['that is long', '```rust\n' + 'let a = 1;\n'.repeat(MAX_HIGHLIGHTED / 10) + '```'],
    ['that is dense', '```json\n[' + '1, '.repeat(MAX_PIECES / 2) + '1]\n```'],
  ])('%s stays plain', async (_, text) => {
    const wrapper = render(text)
    await flushPromises()
    expect(wrapper.find('code').exists()).toBe(true)
    expect(colours(wrapper)).toEqual([])
  })

  it('stays plain, without a word, when the highlighter cannot be loaded', async () => {
    const complain = vi.spyOn(console, 'error')
    const worker = new WorkerStandIn()
    const wrapper = render(RUST, false, worker)
    const before = wrapper.html()
    worker.failToLoad()
    await flushPromises()
    expect(wrapper.html()).toBe(before)
    expect(complain).not.toHaveBeenCalled()
  })

  it('that is gone before the answer asks for nothing', async () => {
    const worker = new WorkerStandIn()
    render(RUST, false, worker).unmount()
    worker.say('ready')
    expect(worker.asked).toEqual([])
  })
})

describe('highlighting of hostile text', () => {
  it.each(PAYLOADS)('$name: only allowed nodes, and the text that was there without it', async ({ source }) => {
    const plain = render(source, false, new WorkerStandIn())
    const wrapper = render(source)
    await flushPromises()
    expect(wrapper.element.textContent).toBe(plain.element.textContent)
    for (const element of wrapper.element.querySelectorAll('*')) {
      expect(ALLOWED_TAGS).toContain(element.tagName.toLowerCase())
      for (const { name } of element.attributes) expect(ALLOWED_ATTRIBUTES).toContain(name)
      for (const name of element.classList) expect(name).toMatch(ALLOWED_CLASS)
    }
  })

  it('draws elements of the model as text in colour', async () => {
    const wrapper = render('```html\n<script>alert(1)</script>\n<img src=x onerror="alert(1)">\n```')
    await flushPromises()
    expect(colours(wrapper).length).toBeGreaterThan(3)
    expect(wrapper.find('script, img').exists()).toBe(false)
    expect(wrapper.get('code').element.textContent).toBe('<script>alert(1)</script>\n<img src=x onerror="alert(1)">')
  })
})

describe('while an answer streams in', () => {
  const TEXT = `Before.\n\n${RUST}\n\nAfter, ${'word '.repeat(100)}`

  it('asks once for each block, and not before it has ended', async () => {
    const worker = new QuickWorkerStandIn()
    const wrapper = render('', true, worker)
    const end = TEXT.indexOf('After')
    for (let length = 1; length <= end; length++) await wrapper.setProps({ text: TEXT.slice(0, length) })
    await flushPromises()
    expect(worker.asked).toEqual([])
    await wrapper.setProps({ text: TEXT.slice(0, end + 1) })
    await flushPromises()
    expect(worker.asked).toEqual([{ source: SOURCE, language: 'rust' }])
    expect(colours(wrapper)).toContain('md-code-keyword fn')
  })

  it('never touches a highlighted block again', async () => {
    const worker = new QuickWorkerStandIn()
    const start = TEXT.indexOf('After') + 1
    const wrapper = render(TEXT.slice(0, start), true, worker)
    await flushPromises()
    const block = wrapper.get('.md-code').element
    const keyword = wrapper.get('.md-code-keyword').element
    const mutations: MutationRecord[] = []
    const observer = new MutationObserver((records) => mutations.push(...records))
    observer.observe(block, { childList: true, characterData: true, subtree: true, attributes: true })
    for (let length = start; length <= TEXT.length; length += 5) await wrapper.setProps({ text: TEXT.slice(0, length) })
    await wrapper.setProps({ text: `${TEXT}\n\nMore.\n\nAnd more.\n` })
    await wrapper.setProps({ streaming: false })
    await flushPromises()
    mutations.push(...observer.takeRecords())
    expect(wrapper.get('.md-code-keyword').element).toBe(keyword)
    expect(mutations).toHaveLength(0)
    expect(worker.asked).toHaveLength(1)
  })

  it('highlights the last block when the answer ends', async () => {
    const worker = new QuickWorkerStandIn()
    const wrapper = render(RUST, true, worker)
    await flushPromises()
    expect(worker.asked).toEqual([])
    await wrapper.setProps({ streaming: false })
    await flushPromises()
    expect(colours(wrapper)).toContain('md-code-keyword fn')
  })

  it('waits for the end of a list around the code', async () => {
    const worker = new QuickWorkerStandIn()
    const list = '- one\n  ```js\n  let a\n  ```\n- two\n'
    const wrapper = render(list, true, worker)
    await flushPromises()
    expect(worker.asked).toEqual([])
    await wrapper.setProps({ text: `${list}\nAfter\nall.\n` })
    await flushPromises()
    expect(worker.asked).toEqual([{ source: 'let a', language: 'js' }])
  })

  it('drops colours of a text that was replaced', async () => {
    const worker = new WorkerStandIn()
    const wrapper = render(RUST, false, worker)
    worker.say('ready')
    await wrapper.setProps({ text: '```rust\nfn b() {}\n```' })
    worker.answer()
    await flushPromises()
    expect(colours(wrapper)).toEqual([])
    worker.answer()
    await flushPromises()
    expect(wrapper.get('code').element.textContent).toBe('fn b() {}')
    expect(colours(wrapper)).toContain('md-code-keyword fn')
  })
})
