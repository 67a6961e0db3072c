import { mount, type VueWrapper } from '@vue/test-utils'
import { beforeAll, describe, expect, it } from 'vitest'
import { loadMarkdown } from './engine'
import MarkdownText from './MarkdownText.vue'
import { loadTypesetter } from './typesetter'
import { MAX_TEX, typeset, type MathElement } from './typeset'
import { inFace } from './variants'

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
