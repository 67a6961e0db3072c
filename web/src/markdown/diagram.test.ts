import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadMarkdown } from './blocks'
import MarkdownText from './MarkdownText.vue'
import { read, type Drawing } from './sealedFrame'

type Tell = (answer: Drawing | { failed: string }) => void

const frames = vi.hoisted(() => ({ opened: [] as { source: string; tell: Tell; closed: boolean }[] }))
vi.mock('./sealedFrame', async (original) => ({
  ...(await original<typeof import('./sealedFrame')>()),
  openFrame: (_place: HTMLElement, source: string, tell: Tell) => {
    const frame = { source, tell, closed: false }
    frames.opened.push(frame)
    return () => (frame.closed = true)
  },
}))

let see: (isIntersecting: boolean) => void = () => {}

beforeAll(loadMarkdown)
beforeEach(() => {
  frames.opened = []
  vi.stubGlobal('IntersectionObserver', class {
    constructor(tell: (entries: { isIntersecting: boolean }[]) => void) {
      see = (isIntersecting) => tell([{ isIntersecting }])
    }
    observe() {}
    disconnect() {}
  })
})
afterEach(() => vi.unstubAllGlobals())

const SOURCE = 'flowchart LR\n  A --> B'

async function render(text: string, streaming = false): Promise<VueWrapper> {
  const wrapper = mount(MarkdownText, { props: { text, streaming } })
  await flushPromises()
  await vi.dynamicImportSettled()
  await flushPromises()
  return wrapper
}

const fenced = (source: string) => '```mermaid\n' + source + '\n```'

describe('a diagram', () => {
  it('is its source until it is drawn, and then on demand', async () => {
    const wrapper = await render(fenced(SOURCE))
    see(true)
    await flushPromises()
    expect(frames.opened.map(({ source }) => source)).toEqual([SOURCE])
    const code = wrapper.get('.md-code').element.parentElement
    expect(code?.hidden).toBe(false)
    frames.opened[0]?.tell({ width: 300, height: 100 })
    await flushPromises()
    expect(code?.hidden).toBe(true)
    expect(wrapper.get('.md-drawing').attributes()).toMatchObject({ role: 'group', tabindex: '0', 'aria-label': 'Diagram' })
    await wrapper.get('.md-toggle').trigger('click')
    expect(code?.hidden).toBe(false)
    expect(wrapper.get('.md-toggle').attributes('aria-expanded')).toBe('true')
  })

  it('is not drawn while it is written, nor before it is near the screen', async () => {
    const wrapper = await render(fenced(SOURCE).slice(0, -4), true)
    see(true)
    await flushPromises()
    expect(frames.opened).toEqual([])
    await wrapper.setProps({ text: fenced(SOURCE), streaming: false })
    await flushPromises()
    expect(frames.opened).toHaveLength(1)
    await render(fenced('pie'))
    see(false)
    await flushPromises()
    expect(frames.opened).toHaveLength(1)
  })

  it('that fails, or is too long, stays its source and says why', async () => {
    const wrapper = await render(fenced(SOURCE))
    see(true)
    await flushPromises()
    frames.opened[0]?.tell({ failed: '<b>no</b>' })
    await flushPromises()
    expect(wrapper.text()).toContain('The diagram was not drawn: <b>no</b>')
    expect(wrapper.find('.md-toggle, .md-drawing').exists()).toBe(false)
    const long = await render(fenced('A --> B\n'.repeat(3_000)))
    see(true)
    await flushPromises()
    expect(long.text()).toContain('The diagram is too long to be drawn.')
    expect(frames.opened).toHaveLength(1)
  })

  it('is closed with the text that it stands in', async () => {
    const wrapper = await render(fenced(SOURCE))
    see(true)
    await flushPromises()
    wrapper.unmount()
    expect(frames.opened[0]?.closed).toBe(true)
  })
})

describe('what a frame says', () => {
  it.each([
    [{ width: 100.2, height: 50 }, { width: 101, height: 50 }],
    [{ width: 24_000, height: 50 }, { width: 2_400, height: 5 }],
    [{ width: 100, height: 1e9 }, { width: 1, height: 1_600 }],
    [{ width: '1e400', height: 1 }, null],
    [{ width: Number.NaN, height: 1 }, null],
    [{ width: -1, height: 1 }, null],
    [{ failed: 'a\n\nb' }, { failed: 'a b' }],
    [{ failed: 'x'.repeat(1_000) }, { failed: 'x'.repeat(300) }],
    ['width', null],
    [null, null],
  ])('%j is read with care', (said, expected) => {
    expect(read(said)).toEqual(expected)
  })
})
