import { mount } from '@vue/test-utils'
import { describe, expect, it, test, vi } from 'vitest'
import { callView } from '@/approval/testing'
import { i18n } from '@/locales'
import type { CallProgress, CallView } from '@/wire/types'
import CallBar from './CallBar.vue'
import CallRow from './CallRow.vue'

function row(change: Partial<CallView>, progress?: CallProgress) {
  return mount(CallRow, { props: { call: callView(change), me: 'ana', progress } })
}

describe('CallRow', () => {
  it.each<[Partial<CallView>, string[]]>([
    [{ decidedBy: { id: 'ana', name: 'Ana' }, durationMs: 1_200 }, ['Done', 'execute_command', 'ls -l', 'you, once', '1.2']],
    [{ decidedBy: { id: 'bo', name: 'Bo' }, edited: true }, ['Bo, edited']],
    [{ decidedBy: { id: 'ana', name: 'Ana' }, edited: true, editedBy: { id: 'bo', name: 'Bo' } }, ['you, edited by Bo']],
    [{ decidedBy: { id: 'bo', name: 'Bo' }, edited: true, editedBy: { id: 'ana', name: 'Ana' } }, ['Bo, edited by you']],
    [{ decidedBy: { id: '', name: 'small' }, review: { status: 'allowed', model: 'small', reason: 'It only reads.', costUsd: 0.0003 } }, ['small: It only reads. · $0.00030']],
    [{ status: 'rejected', decidedBy: { id: 'bo', name: 'Bo' }, reason: 'not on main' }, ['Refused', 'Bo: not on main']],
    [{ status: 'failed' }, ['Failed']],
    [{ status: 'cancelled' }, ['Stopped']],
  ])('says what became of %j', (change, words) => {
    const text = row(change).text()
    for (const word of words) expect(text).toContain(word)
  })

  it('is not green when the command ended with another code than 0', () => {
    const wrapper = row({ exitCode: 3 })
    expect(wrapper.text()).toContain('Exit 3')
    expect(wrapper.text()).not.toContain('Done')
    expect(wrapper.get('.row-word').classes()).toContain('row-failed')
    expect(wrapper.find('.glyph-failed').exists()).toBe(true)
    expect(row({ exitCode: 0 }).get('.row-word').classes()).toContain('row-done')
  })

  it.each(['rejected', 'cancelled', 'failed'] as const)('gives no time for what never ran and is %s', (status) => {
    expect(row({ status, durationMs: 0 }).text()).not.toContain('ms')
  })

  it('shows hidden characters in the one line, and counts the lines that it leaves out', () => {
    const text = row({ args: { command: 'a\u202Eb\nc' } }).text()
    expect(text).toContain('a⟦U+202E⟧b … 1 more line')
    expect(text).not.toContain('⟦U+000A⟧')
  })

  it('counts the characters that it leaves out of a long line', () => {
    expect(row({ args: { command: 'x'.repeat(1_000) } }).text()).toContain('760 more characters')
  })

  it('stops its own call', async () => {
    const wrapper = row({ status: 'executing' }, { text: 'third of seven', value: 3, total: 7 })
    expect(wrapper.text()).toContain('third of seven')
    await wrapper.get('.row-stop').trigger('click')
    expect(wrapper.get('.row-stop').attributes('aria-label')).toBe('Stop: Run a command')
    expect(wrapper.emitted('stop')).toEqual([['call_1_0']])
  })

  it('asks what became of a call that the server lost', async () => {
    const wrapper = row({ status: 'unknown', cause: 'the server `far` was told to stop; it may go on' })
    expect(wrapper.get('.row-unknown-form').text()).toContain('the server `far` was told to stop; it may go on')
    expect(wrapper.text()).toContain('It is unknown whether this ran.')
    await wrapper.get('.row-unknown-form button').trigger('click')
    expect(wrapper.emitted('settle')).toEqual([[{ callId: 'call_1_0', happened: true }]])
  })

  it('keeps the word of the person who settled it', () => {
    const wrapper = row({ status: 'unknown', settled: { happened: true, by: { id: 'bo', name: 'Bo' } } })
    expect(wrapper.text()).toContain('Bo: it ran')
    expect(wrapper.find('.row-unknown-form').exists()).toBe(false)
    expect(row({ status: 'unknown', settled: { happened: false, by: { id: 'ana', name: 'Ana' } } }).text()).toContain("you: it didn't run")
  })

  it('opens to arguments, output and hash', async () => {
    const wrapper = row({ output: `\u001b[31mred\u001b[0m\n${'line\n'.repeat(400)}`, digest: 'abc123', truncated: { bytes: 12_345, link: 'https://evil.example/' } })
    expect(wrapper.find('.row-record').exists()).toBe(false)
    await wrapper.get('.row-toggle').trigger('click')
    expect(wrapper.get('.ansi-red').text()).toBe('red')
    expect(wrapper.text()).toContain('152 more lines. Show all 402')
    expect(wrapper.text()).toContain('abc123')
    expect(wrapper.text()).toContain('12,345 bytes in the middle were not kept.')
    expect(wrapper.find('a').exists()).toBe(false)
  })

  it('says which rule decided, again and again, and takes back one that somebody gave', async () => {
    await import('@/rules/RuleTakeBack.vue')
    const byRule = (id: string) => row({ decidedBy: { id, name: 'rule notes/' } })
    const given = byRule('rul_1')
    await vi.dynamicImportSettled()
    expect(given.text()).toContain('rule notes/')
    expect(given.text()).not.toContain('once')
    expect(given.get('.take-back button').attributes('aria-label')).toBe('Take back the rule: Run a command')
    const ofTool = byRule('tool:files/write_file')
    await vi.dynamicImportSettled()
    expect(ofTool.text()).toContain('rule notes/')
    expect(ofTool.find('.take-back').exists()).toBe(false)
  })

  it('keeps the focus when it is settled', async () => {
    const unknown = callView({ status: 'unknown' })
    const wrapper = mount(CallRow, { props: { call: unknown }, attachTo: document.body })
    const happened = wrapper.get<HTMLButtonElement>('.row-unknown-form button')
    happened.element.focus()
    await wrapper.setProps({ call: { ...unknown, settled: { happened: true } } })
    await Promise.resolve()
    expect(document.activeElement).toBe(wrapper.get('.row-toggle').element)
    wrapper.unmount()
  })

  it('shows both the edited and the original arguments', async () => {
    const wrapper = row({ originalArgs: { command: 'rm -rf /' }, edited: true })
    await wrapper.get('.row-toggle').trigger('click')
    expect(wrapper.text()).toContain('rm -rf /')
    expect(wrapper.text()).toContain('ls -l')
    expect(wrapper.text()).toContain('Arguments changed by someone, next to the original')
  })
})

describe('the progress', () => {
  function bar(value: number, total: number | null, text = '') {
    return mount(CallBar, { props: { progress: { value, total, text }, about: 'echo' }, global: { plugins: [i18n] } }).get('progress')
  }

  test('a bar says how far its call is, also where a server counts past its end', () => {
    expect(bar(3, 10).attributes()).toMatchObject({ 'value': '30', 'max': '100', 'aria-label': 'Progress of echo' })
    expect(bar(30, 10).attributes('value')).toBe('100')
    expect(bar(-1, 10).attributes('value')).toBe('0')
    expect(bar(3, 10, 'reads \u202efile').attributes('aria-valuetext')).toMatch(/^30 %: reads [^\u202e]+file$/)
  })

  test('without a total nobody knows the end', () => {
    expect(bar(3, null).attributes('value')).toBeUndefined()
  })
})
