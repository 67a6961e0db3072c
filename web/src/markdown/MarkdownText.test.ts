import { mount, type VueWrapper } from '@vue/test-utils'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { BlockStream, MAX_FORMATTED_CHARACTERS } from './blocks'
import { loadMarkdown } from './engine'
import MarkdownText from './MarkdownText.vue'
import { loadTypesetter } from './typesetter'
import { parse } from './parser'
import { ALLOWED_ATTRIBUTES, ALLOWED_CLASS, ALLOWED_TAGS, PAYLOADS } from './payloads'

beforeAll(() => Promise.all([loadMarkdown(), loadTypesetter()]))

function render(text: string, streaming = false): VueWrapper {
  return mount(MarkdownText, { props: { text, streaming } })
}

/** What is drawn without our own notes (hosts, the head of a code block). */
function drawnText(wrapper: VueWrapper): string {
  const copy = wrapper.element.cloneNode(true) as HTMLElement
  for (const note of copy.querySelectorAll('.md-note')) note.remove()
  for (const formula of copy.querySelectorAll('math')) formula.replaceWith(formula.querySelector('annotation')?.textContent ?? '')
  return (copy.textContent ?? '').replace(/\s+/g, '')
}

/** How far a formula may reach. */
const LENGTHS = ['lspace', 'rspace', 'width', 'height', 'depth', 'voffset', 'minsize', 'maxsize']

function checkAllowed(wrapper: VueWrapper): void {
  for (const element of wrapper.element.querySelectorAll('*')) {
    expect(ALLOWED_TAGS).toContain(element.tagName.toLowerCase())
    for (const attribute of element.attributes) {
      expect(ALLOWED_ATTRIBUTES).toContain(attribute.name)
      if (attribute.name === 'class') for (const name of element.classList) expect(name).toMatch(ALLOWED_CLASS)
      if (LENGTHS.includes(attribute.name)) expect(Math.abs(Number.parseFloat(attribute.value))).toBeLessThanOrEqual(20)
      if (attribute.name === 'href') expect(attribute.value).toMatch(/^(?:https?:\/\/|mailto:)/)
    }
    if (element.tagName === 'A') expect(element.getAttribute('rel')).toBe('noopener noreferrer')
  }
}

describe('hostile text', () => {
  it('is at least forty different payloads', () => {
    expect(new Set(PAYLOADS.map(({ source }) => source)).size).toBeGreaterThanOrEqual(40)
  })

  it.each(PAYLOADS)('$name: only allowed nodes, and all of its text', ({ source, text }) => {
    const wrapper = render(source)
    checkAllowed(wrapper)
    expect(drawnText(wrapper)).toBe((text ?? source).replace(/\s+/g, ''))
  })

  it.each(PAYLOADS.filter(({ source }) => source.length < 400))('$name: the same while it streams in', async ({ source, text }) => {
    const wrapper = render('', true)
    for (let length = 1; length <= source.length; length += 3) {
      await wrapper.setProps({ text: source.slice(0, length) })
      checkAllowed(wrapper)
    }
    await wrapper.setProps({ text: source, streaming: false })
    expect(drawnText(wrapper)).toBe((text ?? source).replace(/\s+/g, ''))
  })

  it('of all payloads in one document keeps to the list', () => {
    checkAllowed(render(PAYLOADS.map(({ source }) => source).join('\n\n')))
  })
})

describe('links and images', () => {
  it('show the host that is reached, and nothing when the text already says it', () => {
    expect(render('[docs](https://docs.example/a)').get('a').text()).toBe('docs (docs.example)')
    expect(render('https://docs.example/a').get('a').text()).toBe('https://docs.example/a')
    expect(render('[https://bank.example](https://evil.example/)').get('a').text()).toBe('https://bank.example (evil.example)')
    expect(render('[https://bank.example.evil.example](https://bank.example/)').get('a').text()).toContain('(bank.example)')
    expect(render('https://аррӏе.com/').get('a').text()).toContain('(xn--80ak6aa92e.com)')
  })

  it('never fetch an image, and say where it would come from', () => {
    const wrapper = render('![a chart](https://evil.example/x.png)')
    expect(wrapper.find('img').exists()).toBe(false)
    expect(wrapper.text()).toContain('Image from evil.example')
    expect(wrapper.get('a').attributes()).toMatchObject({ href: 'https://evil.example/x.png', rel: 'noopener noreferrer' })
  })

  it('do not nest links', () => {
    expect(render('[![a](https://x.example/1.png)](https://x.example/)').findAll('a')).toHaveLength(1)
  })
})

describe('ordinary text', () => {
  it('is drawn as GFM', () => {
    const html = render('# Title\n\n1. *a*\n2. **b** ~~c~~\n\n| x | y |\n|--|:-:|\n| 1 | 2 |\n\n> q\n\n```rust\nfn x() {}\n```').html()
    for (const part of ['<h3>Title</h3>', '<em>a</em>', '<strong>b</strong>', '<s>c</s>', 'class="md-center"', '<blockquote>', 'class="language-rust"']) {
      expect(html).toContain(part)
    }
  })

  it.each([
    '\\(a\\)',
    'so \\(a*b*c + x_1\\) holds',
    '\\[ a_{1} [x](y) \\]',
  ])('keeps the text of %s', (source) => {
    const wrapper = render(source)
    expect(wrapper.find('math').exists()).toBe(true)
    expect(drawnText(wrapper)).toBe(source.replace(/\s+/g, ''))
    expect(wrapper.find('em').exists()).toBe(false)
  })

  it('still escapes what is escaped', () => {
    expect(drawnText(render('\\*a\\* \\\\ \\`b\\` \\(c'))).toBe('*a*\\`b`(c')
  })

  it('keeps the number at which a list starts', () => {
    expect(render('3. c').get('ol').attributes('start')).toBe('3')
  })
})

describe('streaming', () => {
  const TEXT = ['# A', 'First **paragraph**.', '- one\n- two', '```js\nlet a = 1\n\nlet b\n```', '| a | b |\n|---|---|\n| 1 | 2 |', '1. a\n\n2. b', 'Last.'].join('\n\n')

  it('never touches a finished block again', async () => {
    const wrapper = render('', true)
    await wrapper.setProps({ text: 'First *one*.\n\nSecond\nline\n' })
    const first = wrapper.get('p').element
    const inner = first.firstElementChild
    const mutations: MutationRecord[] = []
    const observer = new MutationObserver((records) => mutations.push(...records))
    observer.observe(first, { childList: true, characterData: true, subtree: true, attributes: true })
    for (let words = 1; words < 40; words++) await wrapper.setProps({ text: `First *one*.\n\nSecond\nline\n${'word '.repeat(words)}` })
    await wrapper.setProps({ streaming: false })
    mutations.push(...observer.takeRecords())
    expect(wrapper.get('p').element).toBe(first)
    expect(first.firstElementChild).toBe(inner)
    expect(mutations).toHaveLength(0)
  })

  it('parses only the open block', () => {
    const spy = vi.fn(parse)
    const stream = new BlockStream(spy)
    let text = ''
    for (let paragraph = 0; paragraph < 200; paragraph++) {
      text += `Paragraph ${paragraph}\nwith two lines.\n\n`
      stream.update(text, false)
    }
    const longest = Math.max(...spy.mock.calls.map(([source]) => source.length))
    expect(longest).toBeLessThan(120)
  })

  it('gives the same blocks as reading the whole at once, whatever the steps', () => {
    for (const step of [1, 2, 3, 7, 50]) {
      const stream = new BlockStream(parse)
      for (let length = step; length < TEXT.length; length += step) stream.update(TEXT.slice(0, length), false)
      const streamed = stream.update(TEXT, false).map(({ start, source }) => ({ start, source }))
      const whole = new BlockStream(parse).update(TEXT, true).map(({ start, source }) => ({ start, source }))
      expect(streamed).toEqual(whole)
    }
  })

  it('starts anew when an attempt is restarted', () => {
    const stream = new BlockStream(parse)
    stream.update('One\n\nTwo\n\nThree\n\n', false)
    expect(stream.update('Other', false).map(({ source }) => source)).toEqual(['Other'])
  })

  it('shows what is too long as it is, and loses nothing', () => {
    const text = 'A line of text.\n'.repeat(MAX_FORMATTED_CHARACTERS / 10)
    const blocks = new BlockStream(parse).update(text, true)
    expect(blocks.at(-1)?.tokens).toBeNull()
    expect(blocks.map(({ source }) => source).join('')).toBe(text)
  })
})
