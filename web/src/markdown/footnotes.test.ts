import { mount, type VueWrapper } from '@vue/test-utils'
import { beforeAll, describe, expect, it } from 'vitest'
import { loadMarkdown } from './engine'
import MarkdownText from './MarkdownText.vue'

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
