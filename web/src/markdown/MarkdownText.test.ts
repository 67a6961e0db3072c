import { mount, type VueWrapper } from '@vue/test-utils'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { BlockStream, loadMarkdown, MAX_FORMATTED_CHARACTERS } from './blocks'
import MarkdownText from './MarkdownText.vue'
import { loadTypesetter } from './MathFormula.vue'
import { parse } from './parser'
import { ALLOWED_ATTRIBUTES, ALLOWED_CLASS, ALLOWED_TAGS, PAYLOADS } from './payloads'
import { inFace, MAX_TEX, typeset, type MathElement } from './typeset'

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
    for (const part of ['<h3 dir="auto">Title</h3>', '<em>a</em>', '<strong>b</strong>', '<s>c</s>', 'class="md-center"', '<blockquote dir="auto">', 'class="language-rust"']) {
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

describe('footnotes', () => {
  beforeAll(loadMarkdown)

  function render(text: string, streaming = false): VueWrapper {
    return mount(MarkdownText, { props: { text, streaming }, attachTo: document.body })
  }

  describe('a footnote', () => {
    const TEXT = 'It is so.[^a]\n\nMore.\n\n[^a]: Because *x*.\n\n    And so on.\n\n[^b]: Alone.\n'

    it('is found from its mark, and the mark from the note', async () => {
      const wrapper = render(TEXT)
      const mark = wrapper.get('.md-foot-mark')
      expect(mark.attributes('aria-label')).toBe('Footnote a')
      await mark.trigger('click')
      expect(document.activeElement).toBe(wrapper.get('.md-footnote').element)
      expect(wrapper.get('.md-footnote').text()).toContain('Because x.')
      expect(wrapper.get('.md-footnote').text()).toContain('And so on.')
      await wrapper.get('.md-foot-back').trigger('click')
      expect(document.activeElement).toBe(mark.element)
    })

    it('of another answer is another one: nothing has an id', async () => {
      const [one, other] = [render(TEXT), render(TEXT)]
      await other.get('.md-foot-mark').trigger('click')
      expect(other.element.contains(document.activeElement)).toBe(true)
      expect(one.find('[id]').exists()).toBe(false)
    })

    it('without a note is the text that was written', () => {
      const wrapper = render('As [^1] and [a-z][^x].')
      expect(wrapper.text()).toBe('As [^1] and [a-z][^x].')
      expect(wrapper.find('button').exists()).toBe(false)
    })

    it('becomes a mark when its note comes, and the block that it stands in is not drawn again', async () => {
      const wrapper = render('One.[^1] Two.\n\nThree.\n\nFour.\n', true)
      const paragraph = wrapper.get('p').element
      const words = paragraph.firstChild
      expect(paragraph.textContent).toBe('One.[^1] Two.')
      await wrapper.setProps({ text: 'One.[^1] Two.\n\nThree.\n\nFour.\n\n[^1]: Yes.\n\nFive.\n' })
      expect(wrapper.get('p').element).toBe(paragraph)
      expect(paragraph.firstChild).toBe(words)
      expect(wrapper.findAll('.md-foot-mark')).toHaveLength(1)
    })

    it('is none within a list, a quote, code or a link', () => {
      const wrapper = render('- [^1]: a\n\n> [^1]: b\n\n`[^1]: c`\n\n[^1](https://x.example/)')
      expect(wrapper.find('.md-footnote').exists()).toBe(false)
      expect(wrapper.get('a').text()).toBe('^1 (x.example)')
    })
  })

  describe('a task', () => {
    it('is a box that cannot be ticked, with its words as the label', () => {
      const wrapper = render('- [ ] one *two*\n- [x] three\n- [X]four\n- [](x)\n\n1. [x] five\n\n   six')
      const boxes = wrapper.findAll('input')
      expect(boxes.map(({ element }) => [element.checked, element.disabled, element.parentElement?.tagName, element.parentElement?.textContent?.trim()])).toEqual([
        [false, true, 'LABEL', 'one two'],
        [true, true, 'LABEL', 'three'],
        [true, true, 'LABEL', 'five'],
      ])
      expect(wrapper.text()).toContain('[X]four')
    })
  })
})

describe('formulas', () => {
  beforeAll(() => Promise.all([loadMarkdown(), loadTypesetter()]))

  function formulas(text: string, streaming = false): string[] {
    const wrapper: VueWrapper = mount(MarkdownText, { props: { text, streaming } })
    return wrapper.findAll('annotation').map((formula) => formula.text())
  }

  describe('what is a formula', () => {
    it.each([
      ['$x$', ['$x$']],
      ['so $a_1 + b$, then $c$.', ['$a_1 + b$', '$c$']],
      ['$$x$$', ['$$x$$']],
      ['a $$x$$ b', ['$$x$$']],
      ['\\(x\\) and \\[y\\]', ['\\(x\\)', '\\[y\\]']],
      ['Text:\n$$\nx = y\n$$\nmore', ['$$\nx = y\n$$']],
      ['\\[\n\\frac{a}{b}\n\\]', ['\\[\n\\frac{a}{b}\n\\]']],
      ['- item\n\n  $$\n  x\n  $$', ['$$\nx\n$$']],
      ['> $$\n> x\n> $$', ['$$\nx\n$$']],
      ['| a |\n|---|\n| $x$ |', ['$x$']],
      ['$\\$5$', ['$\\$5$']],
      ['$5$ is a number', ['$5$']],
    ])('%j', (text, expected) => {
      expect(formulas(text)).toEqual(expected)
    })

    it.each([
      'It costs $5 and $10.',
      'From $5 to $10, or US$20 to US$30.',
      '$5/$10, $1,000-$2,000, $5k–$10k',
      '$5 off and 10$ on top',
      '**$5** and **$10**',
      'echo $HOME and $PATH; a $ b $ c',
      '$HOME/$USER',
      '\\$x\\$',
      '`$x$`',
      '$$',
      '$$\n\nx\n\n$$',
      '\\[a\\](https://x.example/)',
    ])('%j is none', (text) => {
      expect(formulas(text)).toEqual([])
    })

    it('is its source until it is closed, also where a line of it looks like a list', () => {
      const text = '$$\n\\begin{aligned}\na &= b \\\\\n- c &= d\n\\end{aligned}\n$$\n'
      for (let length = 4; length < text.length - 3; length += 1) {
        const wrapper = mount(MarkdownText, { props: { text: text.slice(0, length), streaming: true } })
        expect(wrapper.find('li, math').exists()).toBe(false)
      }
      expect(formulas(text, true)).toHaveLength(1)
    })
  })

  describe('the drawing of a formula', () => {
    const all = (element: MathElement): MathElement[] => [element, ...element.children.flatMap((child) => (typeof child === 'string' ? [] : all(child)))]

    it('has the letters of the face that TeX asks for, which browsers do not choose', () => {
      const text = JSON.stringify(typeset('\\mathbb{R}\\mathcal{L}\\mathbf{A}\\boldsymbol{\\alpha}\\mathfrak{g}\\mathtt{x1}', false))
      for (const letter of ['ℝ', 'ℒ', '𝐀', '𝜶', '𝔤', '𝚡', '𝟷']) expect(text).toContain(letter)
      expect(inFace('aé1', 'bold')).toBe('𝐚é𝟏')
      expect(inFace('h', 'italic')).toBe('ℎ')
      expect(inFace('h', 'constructor')).toBe('h')
    })

    it('has the sides of an alignment', () => {
      const cells = all(typeset('\\begin{aligned}a&=b\\end{aligned}', true) as MathElement).filter(({ tag }) => tag === 'mtd')
      expect(cells.map(({ attributes }) => attributes.class)).toEqual(['md-math-end md-math-tight', 'md-math-start md-math-close'])
    })

    it('has no colour, link, style or class of the model, and reaches nowhere', () => {
      const tex = '\\color{red}\\href{https://x.example}{a}\\htmlClass{fixed}{b}\\rule{900em}{900em}\\kern{-900em}\\raisebox{500em}{c}\\fbox{d}'
      for (const { attributes } of all(typeset(tex, false) as MathElement)) {
        for (const [name, value] of Object.entries(attributes)) {
          expect(['display', 'displaystyle', 'scriptlevel', 'mathvariant', 'encoding', 'class', 'width', 'height', 'depth', 'voffset', 'lspace', 'rspace']).toContain(name)
          if (name === 'class') expect(value).toMatch(/^md-math-/)
          if (/width|height|depth|voffset/.test(name)) expect(Math.abs(Number.parseFloat(value))).toBeLessThanOrEqual(20)
        }
      }
    })

    it.each(['\\frac{', '\\def\\a{\\a\\a}\\a', '}', '\\begin{nothing}', 'x'.repeat(MAX_TEX + 1), '\\sqrt{'.repeat(500) + 'x' + '}'.repeat(500), '{x}^{2}'.repeat(2_000)])('is left out where it is wrong, or too much: %#', (tex) => {
      expect(typeset(tex, false)).toBeNull()
    })
  })
})
