import { mount } from '@vue/test-utils'
import { describe, expect, it } from 'vitest'
import StateGlyph, { type GlyphState } from './StateGlyph.vue'

const STATES: GlyphState[] = ['waits', 'approved', 'done', 'running', 'refused', 'stopped', 'failed', 'unknown']

describe('StateGlyph', () => {
  it('has a drawing of its own for every state, told apart without colour', () => {
    const drawings = STATES.map((state) => mount(StateGlyph, { props: { state } }).element.innerHTML)
    expect(new Set(drawings).size).toBe(STATES.length)
  })

  it('is hidden from screen readers unless it has a label', () => {
    expect(mount(StateGlyph, { props: { state: 'done' } }).attributes('aria-hidden')).toBe('true')
    const labelled = mount(StateGlyph, { props: { state: 'done', label: 'done' } })
    expect(labelled.attributes()).toMatchObject({ role: 'img', 'aria-label': 'done' })
  })

  it('opens only when a call is released', async () => {
    const wrapper = mount(StateGlyph, { props: { state: 'done' as GlyphState } })
    expect(wrapper.classes()).not.toContain('glyph-opens')
    await wrapper.setProps({ state: 'approved' })
    await wrapper.setProps({ state: 'running' })
    expect(wrapper.classes()).toContain('glyph-opens')
    await wrapper.setProps({ state: 'done' })
    expect(wrapper.classes()).not.toContain('glyph-opens')
  })
})
