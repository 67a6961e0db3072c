import { mount } from '@vue/test-utils'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import CodeBlock from '@/markdown/CodeBlock.vue'
import { copyText } from './clipboard'

afterEach(() => vi.restoreAllMocks())

describe('copyText', () => {
  it('selects and copies where there is no clipboard, and gives the focus back', async () => {
    vi.stubGlobal('isSecureContext', false)
    const button = document.body.appendChild(document.createElement('button'))
    button.focus()
    let copied = ''
    document.execCommand = () => {
      copied = (document.activeElement as HTMLTextAreaElement).value
      return true
    }
    expect(await copyText('a\nb')).toBe(true)
    expect(document.querySelector('textarea')).toBeNull()
    expect(document.activeElement).toBe(button)
    expect(['a\nb', '']).toContain(copied)
    vi.unstubAllGlobals()
  })

  it('says so when the browser refuses', async () => {
    vi.stubGlobal('isSecureContext', false)
    document.execCommand = () => false
    const wrapper = mount(CodeBlock, { props: { source: 'x', info: 'js' } })
    await wrapper.get('button').trigger('click')
    await nextTick()
    expect(wrapper.get('button').text()).toContain('Select')
    vi.unstubAllGlobals()
  })
})
