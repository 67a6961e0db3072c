import { flushPromises, mount, type DOMWrapper, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nextTick, reactive } from 'vue'
import { goingOnWords } from '@/approval/card/ApprovalCard.vue'
import { NOW, queueCall } from '@/approval/testing'
import { GUARD_MS } from '@/browser/inputGuard'
import { dateTime } from '@/locales/format'
import { usePerson } from '@/stores/person'
import type { Me } from '@/wire/restTypes'
import type { QueueCall } from '@/wire/types'
import ApprovalTray from './ApprovalTray.vue'

let wrapper: VueWrapper<InstanceType<typeof ApprovalTray>>
let composer: HTMLTextAreaElement

beforeEach(() => {
  vi.useFakeTimers()
  composer = document.body.appendChild(document.createElement('textarea'))
})
afterEach(() => {
  wrapper.unmount()
  document.body.innerHTML = ''
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function show(calls: QueueCall[], isArmed = true): void {
  wrapper = mount(ApprovalTray, { props: { calls, now: NOW, me: 'ana' }, attachTo: document.body })
  if (isArmed) vi.advanceTimersByTime(GUARD_MS)
}

async function update(calls: QueueCall[], isArmed = true): Promise<void> {
  await wrapper.setProps({ calls })
  await nextTick()
  if (isArmed) vi.advanceTimersByTime(GUARD_MS)
}

async function settled(): Promise<void> {
  await nextTick()
  await nextTick()
  await nextTick()
}

function button(name: string): DOMWrapper<Element> {
  const found = wrapper.findAll('button').find((candidate) => (candidate.attributes('aria-label') ?? candidate.text()).startsWith(name))
  if (found === undefined) throw new Error(`no button \`${name}\``)
  return found
}

function has(name: string): boolean {
  return wrapper.findAll('button').some((candidate) => (candidate.attributes('aria-label') ?? candidate.text()).startsWith(name))
}

async function key(name: string, options: KeyboardEventInit = {}, target: Element | null = document.activeElement): Promise<KeyboardEvent> {
  const event = new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, ...options })
  target?.dispatchEvent(event)
  await settled()
  return event
}

function focusedCall(): string | undefined {
  return (document.activeElement as HTMLElement | null)?.dataset.callId
}

const three = () => [queueCall('a'), queueCall('b'), queueCall('c')]

describe('the card', () => {
  it('says what would happen, where, and names its buttons after it', () => {
    show([queueCall('CHANGELOG')])
    expect(wrapper.get('section').attributes('aria-label')).toBe('Waiting for you')
    expect(wrapper.get('h3').text()).toBe('Write CHANGELOG.md')
    expect(wrapper.text()).toContain("this session's sandbox, no network")
    expect(wrapper.text()).toContain('New content: 2 lines, 8 bytes')
    for (const name of ['Approve', 'Reject', 'More']) expect(has(`${name}: Write CHANGELOG.md`)).toBe(true)
  })

  it('keeps the rest in a menu, whose keys are its own', async () => {
    show([queueCall('a')])
    const open = async () => {
      await button('More: Write a.md').trigger('click')
      await settled()
    }
    const entries = () => wrapper.findAll('[role=menuitem]').map((entry) => entry.attributes('aria-label'))
    expect(entries()).toEqual([])
    await open()
    expect(entries()).toEqual(['Edit: Write a.md', 'Read all: Write a.md'])
    expect(document.activeElement?.getAttribute('aria-label')).toBe('Edit: Write a.md')
    await key('ArrowDown')
    expect(document.activeElement?.getAttribute('aria-label')).toBe('Read all: Write a.md')
    for (const letter of ['a', 'r', 's']) await key(letter)
    expect(wrapper.emitted('decide')).toBeUndefined()
    expect(wrapper.find('.card-reason').exists()).toBe(false)
    await key('Escape')
    expect(entries()).toEqual([])
    expect(document.activeElement?.getAttribute('aria-label')).toBe('More: Write a.md')
    expect(wrapper.emitted('leave')).toBeUndefined()
    await open()
    vi.advanceTimersByTime(GUARD_MS)
    await key('e')
    expect(has('Approve edited: Write a.md')).toBe(true)
  })

  it('says how long it can be decided, and once that this ends soon', async () => {
    const expiresAt = new Date(NOW + 30 * 60_000).toISOString()
    show([queueCall('CHANGELOG', { since: new Date(NOW).toISOString(), expiresAt })])
    const told = () => wrapper.get('.tray-row-line [role="status"]').text()
    expect(wrapper.get('.tray-expiry').text()).toBe('Expires in 30 min')
    expect(told()).toBe('')
    await wrapper.setProps({ now: NOW + 27 * 60_000 })
    expect(wrapper.get('.tray-expiry').text()).toBe('Expires soon, in 3 min')
    const once = told()
    expect(once).toContain('Expires soon')
    await wrapper.setProps({ now: NOW + 28 * 60_000 })
    expect(told()).toBe(once)
  })

  it('shows hidden characters and folds long values with the exact count', () => {
    show([queueCall('a', { name: 'execute_command', args: { command: `echo ${'x'.repeat(5_000)}\u202E` } })])
    expect(wrapper.text()).toContain('Contains hidden characters')
    expect(wrapper.text()).toContain('⟦U+202E⟧')
    expect(wrapper.text()).toContain('3,006 more characters')
  })

  it('puts the gravest cue first', () => {
    show([queueCall('a', { firstUse: true, drift: { since: '2026-11-20T09:30:00+00:00' }, annotations: { destructiveHint: true }, runsIn: { kind: 'container', hosts: ['api.github.com'] } })])
    expect(wrapper.findAll('.card-cue').map((cue) => cue.text())).toEqual([
      `The tool's definition changed on ${dateTime('2026-11-20T09:30:00+00:00')}`, 'The server marks this tool as destructive', 'Reaches outside the sandbox', 'First use in this session',
    ])
    expect(wrapper.text()).toContain('own container, may reach api.github.com')
  })

  it('repeats the claim of the server only where something that is there may change', () => {
    const cues = (change: Partial<QueueCall>) => {
      show([queueCall('a', { annotations: { destructiveHint: true }, ...change })])
      const texts = wrapper.findAll('.card-cue').map((cue) => cue.text())
      wrapper.unmount()
      return texts
    }
    const claim = 'The server marks this tool as destructive'
    expect(cues({ name: 'execute_command', args: { command: 'ls' } })).not.toContain(claim)
    expect(cues({ name: 'read_file', args: { path: 'a' } })).not.toContain(claim)
    expect(cues({ name: 'delete_file', args: { path: 'a' } })).toContain(claim)
    expect(cues({ name: 'delete_issue', args: { id: 7 } })).toContain(claim)
    // Out of the sandbox the claim is what keeps it out of an approval of all.
    expect(cues({ name: 'execute_command', args: { command: 'ls' }, runsIn: { kind: 'remote', hosts: ['x.example'] } })).toContain(claim)
    show([queueCall('a')])
  })

  it('says whether a write makes a file or replaces one, and how much of it', async () => {
    const cue = () => wrapper.findAll('.card-cue').map((it) => it.text())
    const write = (file: QueueCall['file']) => queueCall('a', { annotations: { destructiveHint: true }, file })
    const claim = 'The server marks this tool as destructive'
    show([write(undefined)])
    expect(cue()).toEqual([claim, 'Changes 1 file'])
    expect(wrapper.get('.diff-head').text()).toBe('New content: 2 lines, 8 bytes')
    await update([write({ exists: false, bytes: 0, isText: false })])
    expect(cue()).toEqual(['New file'])
    expect(wrapper.get('.diff-head').text()).toBe('New file: 2 lines, 8 bytes')
    await update([write({ exists: true, lines: 120, bytes: 840, isText: true })])
    expect(cue()).toEqual([claim, 'Replaces 120 lines'])
    expect(wrapper.get('.diff-head').text()).toBe('New content: 2 lines, 8 bytes. It replaces 120 lines.')
    await update([write({ exists: true, lines: 1, bytes: 7, isText: true })])
    expect(cue()).toEqual([claim, 'Replaces 1 line'])
    await update([write({ exists: true, lines: 0, bytes: 0, isText: true })])
    expect(cue()).toEqual([claim, 'Replaces an empty file'])
    await update([write({ exists: true, bytes: 3_100_000, isText: false })])
    expect(cue()).toEqual([claim, 'Replaces 3.1 MB'])
    expect(wrapper.get('.diff-head').text()).toBe('New content: 2 lines, 8 bytes. It replaces 3.1 MB.')
    // Out of the sandbox the claim keeps the call out of an approval of all, whatever is there.
    await update([queueCall('a', { annotations: { destructiveHint: true }, runsIn: { kind: 'remote', hosts: [] }, file: { exists: false, bytes: 0, isText: false } })])
    expect(cue()).toContain(claim)
  })

  it('says why it asks and what the model said in one line', async () => {
    show([queueCall('a', { said: 'I make a file.' })])
    expect(wrapper.get('.why-line').text()).toBe('Asked by rule “ask everything” The model said: I make a file.'.replace(' The', 'The'))
    await update([queueCall('a', { said: 'x'.repeat(320) })])
    expect(wrapper.get('.why-line').text()).toContain('What the model said (320 characters)')
    expect(wrapper.find('blockquote').exists()).toBe(false)
    await button('What the model said').trigger('click')
    expect(wrapper.get('blockquote').text()).toBe('x'.repeat(320))
  })

  it('says that a model reviews the call, and why it did not approve it', async () => {
    show([queueCall('a', { review: { status: 'running' } })])
    expect(wrapper.get('.why [role=status]').text()).toBe('A model is reviewing this call. You can decide at any time.')
    await update([queueCall('a', { review: { status: 'refused', model: 'small', reason: 'It deletes\u202e files.', costUsd: 0.0003 } })])
    expect(wrapper.get('.why [role=status]').text()).toMatch(/^small did not approve: It deletes.* files\. · \$0\.00030$/)
    await update([queueCall('a', { review: { status: 'running' }, status: 'approved' })])
    expect(wrapper.find('.why [role=status]').exists()).toBe(false)
  })

  it('says a path once, where the heading shows it to the last character', async () => {
    const rows = () => wrapper.findAll('.arguments-row dt').map((row) => row.text())
    show([queueCall('a')])
    expect(rows()).toEqual([])
    await update([queueCall('a', { args: { path: 'a  b.md', content: 'x' } })])
    expect(rows()).toEqual(['path'])
    await update([queueCall('a', { args: { path: 'a\u202E.md', content: 'x' } })])
    expect(rows()).toEqual(['path'])
  })

  it('stands also for a call without facts, as the gateway sends one that could not be valid', async () => {
    const bare = { args: undefined, schema: undefined, annotations: undefined, runsIn: undefined, digest: undefined }
    show([queueCall('a', { ...bare, name: 'no_such_tool', status: 'rejected' }), queueCall('b')])
    expect(wrapper.findAll('.tray-row')[0]?.text()).toContain('no_such_tool')
    void wrapper.findAll('.tray-row')[0]?.trigger('click')
    await settled()
    expect(wrapper.get('h3').text()).toContain('no_such_tool')
    expect(wrapper.text()).toContain('No arguments')
  })

  it('says where a whole number may be rounded, and shows the exact text where there is one', async () => {
    const args = JSON.parse('{"id":9007199254740993}')
    show([queueCall('a', { name: 'remove', args })])
    expect(wrapper.text()).toContain('Whole numbers above 9,007,199,254,740,991 may be shown rounded')
    await update([queueCall('a', { name: 'remove', args, argsText: '{"id":9007199254740993}' })])
    expect(wrapper.text()).toContain('{"id":9007199254740993}')
    expect(wrapper.text()).not.toContain('may be shown rounded')
    await update([queueCall('a', { name: 'remove', args }), queueCall('b', { name: 'remove', args: { id: 2 ** 53 - 1 } }), queueCall('c')])
    await button('Approve 2 (1 needs its own look)').trigger('click')
    expect(wrapper.emitted('decide-all')).toEqual([[{ callIds: ['b', 'c'], approved: true }]])
  })

  it('has no buttons for those who may not decide', () => {
    show([queueCall('a', { mayDecide: false })])
    expect(wrapper.text()).toContain('Waiting for an admin')
    expect(wrapper.find('[data-decides]').exists()).toBe(false)
  })
})

describe('the guard', () => {
  it('ignores clicks and keys for 400 ms after a card appears', async () => {
    show([queueCall('a')], false)
    await button('Approve').trigger('click')
    wrapper.vm.focusTray()
    await settled()
    await key('a')
    vi.advanceTimersByTime(GUARD_MS - 1)
    await key('a')
    expect(wrapper.emitted('decide')).toBeUndefined()
    vi.advanceTimersByTime(1)
    await key('a')
    expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: true, digest: 'digest-a' }]])
  })

  it('starts anew when the call changes, and sends the digest that was seen', async () => {
    show([queueCall('a')])
    await update([queueCall('a', { digest: 'other' })], false)
    await button('Approve').trigger('click')
    expect(wrapper.emitted('decide')).toBeUndefined()
    vi.advanceTimersByTime(GUARD_MS)
    await button('Approve').trigger('click')
    expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: true, digest: 'other' }]])
  })

  it('starts anew when another call arrives or the window changes', async () => {
    show([queueCall('a')])
    await update([queueCall('a'), queueCall('b')], false)
    await button('Approve').trigger('click')
    vi.advanceTimersByTime(GUARD_MS)
    window.dispatchEvent(new Event('resize'))
    await button('Approve').trigger('click')
    expect(wrapper.emitted('decide')).toBeUndefined()
  })

  it('never decides by key repeat', async () => {
    show([queueCall('a')])
    wrapper.vm.focusTray()
    await settled()
    await key('a', { repeat: true })
    const approve = button('Approve').element as HTMLElement
    approve.focus()
    const held = await key('Enter', { repeat: true })
    expect(held.defaultPrevented).toBe(true)
    expect(wrapper.emitted('decide')).toBeUndefined()
  })

  it('is not passed by typing elsewhere while calls arrive', async () => {
    composer.focus()
    show([queueCall('a')])
    for (const [index, character] of [...'yes, and run all of it\n'].entries()) {
      const event = await key(character === '\n' ? 'Enter' : character)
      expect(event.defaultPrevented).toBe(false)
      vi.advanceTimersByTime(12)
      if (index === 5) await update([queueCall('a'), queueCall('b')], false)
      if (index === 10) await update(three(), false)
    }
    expect(document.activeElement).toBe(composer)
    expect(wrapper.emitted()).not.toHaveProperty('decide')
    expect(wrapper.emitted()).not.toHaveProperty('decide-all')
  })
})

describe('keys', () => {
  it('does nothing by Enter or Space on the card: there is no default button', async () => {
    show([queueCall('a')])
    wrapper.vm.focusTray()
    await settled()
    await key('Enter')
    await key(' ')
    expect(wrapper.emitted('decide')).toBeUndefined()
  })

  it('rejects with a reason by R, text, Enter', async () => {
    show([queueCall('a')])
    wrapper.vm.focusTray()
    await settled()
    await key('r')
    const field = wrapper.get<HTMLInputElement>('.card-reason input')
    expect(document.activeElement).toBe(field.element)
    await field.setValue('not on main')
    await key('a')
    expect(wrapper.emitted('decide')).toBeUndefined()
    vi.advanceTimersByTime(GUARD_MS)
    await key('Enter')
    expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: false, reason: 'not on main' }]])
  })

  it('closes the reason by Escape and gives the focus back to the card', async () => {
    show([queueCall('a')])
    wrapper.vm.focusTray()
    await settled()
    await key('r')
    await key('Escape')
    expect(focusedCall()).toBe('a')
    expect(wrapper.emitted('leave')).toBeUndefined()
    await key('Escape')
    expect(wrapper.emitted('leave')).toHaveLength(1)
  })

  it('goes one step only while Escape is held', async () => {
    show([queueCall('a')])
    wrapper.vm.focusTray()
    await settled()
    await key('r')
    await key('Escape')
    const held = await key('Escape', { repeat: true })
    expect(held.defaultPrevented).toBe(true)
    expect(wrapper.emitted('leave')).toBeUndefined()
    vi.advanceTimersByTime(GUARD_MS)
    await key('r')
    await key('Escape', { repeat: true })
    expect(wrapper.find('.card-reason').exists()).toBe(true)
  })

  it('moves by arrows', async () => {
    show(three())
    wrapper.vm.focusTray()
    await settled()
    await key('ArrowDown')
    expect(focusedCall()).toBe('b')
    await key('ArrowUp')
    await key('ArrowUp')
    expect(focusedCall()).toBe('c')
  })

  it('reads all by D in full height, then as JSON, and decides from there', async () => {
    const content = Array.from({ length: 300 }, (_, line) => `line ${line + 1}`).join('\n')
    show([queueCall('a', { args: { path: 'a.md', content } }), queueCall('b')])
    expect(wrapper.text()).toContain('240 more lines (2,103 characters)')
    expect(wrapper.text()).not.toContain('line 150')
    wrapper.vm.focusTray()
    await settled()
    await key('d')
    expect(wrapper.get('section').classes()).toContain('tray-reader')
    expect(wrapper.text()).toContain('line 150')
    expect(wrapper.text()).not.toContain('more lines')
    expect(document.activeElement?.classList.contains('card-body')).toBe(true)
    await key('d')
    expect(wrapper.text()).toContain('"path": "a.md"')
    await key('Escape')
    expect(wrapper.get('section').classes()).not.toContain('tray-reader')
    expect(focusedCall()).toBe('a')
    await key('d')
    await key('a')
    expect(wrapper.emitted('decide')).toBeUndefined()
    vi.advanceTimersByTime(GUARD_MS)
    await key('a')
    expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: true, digest: 'digest-a' }]])
    expect(wrapper.get('section').classes()).not.toContain('tray-reader')
    expect(focusedCall()).toBe('b')
  })

  it('closes the reader when the focus goes to what it covers', async () => {
    show([queueCall('a')])
    wrapper.vm.focusTray()
    await settled()
    await key('d')
    composer.focus()
    await settled()
    expect(wrapper.get('section').classes()).not.toContain('tray-reader')
    expect(document.activeElement).toBe(composer)
  })

  it('leaves Edit by Escape, keeps what was typed, and says that it is not what runs', async () => {
    show(three())
    wrapper.vm.focusTray()
    await settled()
    await key('e')
    await wrapper.get('[data-field="content"]').setValue('other words')
    await key('Escape')
    expect(wrapper.find('.edit').exists()).toBe(false)
    expect(focusedCall()).toBe('a')
    expect(wrapper.emitted('leave')).toBeUndefined()
    expect(wrapper.text()).toContain('Your changes are kept under Edit. Approve runs the call without them.')
    // Neither another card nor a way out loses them.
    await key('ArrowDown')
    await key('ArrowUp')
    await key('Escape')
    expect(wrapper.emitted('leave')).toHaveLength(1)
    vi.advanceTimersByTime(GUARD_MS)
    wrapper.vm.focusTray()
    await settled()
    await key('e')
    expect(wrapper.get<HTMLTextAreaElement>('[data-field="content"]').element.value).toBe('other words')
    await key('Escape')
    await button('Discard changes: Write a.md').trigger('click')
    expect(wrapper.text()).not.toContain('Your changes are kept')
    vi.advanceTimersByTime(GUARD_MS)
    await key('a', {}, wrapper.get('article').element)
    expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: true, digest: 'digest-a' }]])
  })

  it('keeps a reason that was begun on another card', async () => {
    show(three())
    wrapper.vm.focusTray()
    await settled()
    await key('r')
    await wrapper.get('.card-reason input').setValue('not on main')
    await wrapper.findAll('.tray-row')[1]?.trigger('click')
    await wrapper.findAll('.tray-row')[0]?.trigger('click')
    await settled()
    expect(wrapper.get<HTMLInputElement>('.card-reason input').element.value).toBe('not on main')
  })

  it('names the way in for newcomers', () => {
    show([queueCall('a')])
    expect(wrapper.text()).toContain('Press Alt+↑ to decide by keyboard')
  })

  it('ignores keys with Ctrl, Alt or Meta', async () => {
    show([queueCall('a')])
    wrapper.vm.focusTray()
    await settled()
    for (const modifier of [{ ctrlKey: true }, { altKey: true }, { metaKey: true }]) await key('a', modifier)
    expect(wrapper.emitted('decide')).toBeUndefined()
  })
})

describe('a batch', () => {
  it('says how many wait, and that nothing runs before', () => {
    show([queueCall('a', { status: 'approved', decidedBy: { id: 'ana', name: 'Ana' } }), queueCall('b', { status: 'rejected', decidedBy: { id: 'bo', name: 'Bo' }, reason: 'no' }), queueCall('c')])
    expect(wrapper.get('.tray-count').text()).toBe('1 of 3 waiting for you. Nothing runs until all are decided.')
    const rows = wrapper.findAll('.tray-row-line').map((row) => row.text())
    expect(rows[0]).toContain('Approved by you, runs when the other call is decided')
    expect(rows[1]).toContain('Refused by Bo: no')
  })

  it('is one list: every row says what tells it from the next, and only the open one is a card', async () => {
    const run = (callId: string, command: string) => queueCall(callId, { name: 'execute_command', args: { command } })
    show([run('a', 'npm test'), run('b', 'cat > run.sh <<X\necho 1\necho 2\nX'), queueCall('c')])
    const rows = () => wrapper.findAll('.tray-title').map((row) => row.text())
    expect(rows()).toEqual(['Run a command', 'Run a command cat > run.sh <<X … 3 more lines', 'Write c.md 2 lines, 8 bytes'])
    expect(wrapper.findAll('.tray-row').map((row) => row.attributes('aria-expanded'))).toEqual(['true', 'false', 'false'])
    await wrapper.findAll('.tray-row')[1]?.trigger('click')
    await settled()
    expect(rows()).toEqual(['Run a command npm test', 'Run a command', 'Write c.md 2 lines, 8 bytes'])
    expect(wrapper.findAll('article')).toHaveLength(1)
    expect(wrapper.findAll('.tray-item')[1]?.find('article').exists()).toBe(true)
    expect(wrapper.get('article').element.id).toBe(wrapper.findAll('.tray-row')[1]?.attributes('aria-controls'))
  })

  it('takes a decision back', async () => {
    show([queueCall('a', { status: 'approved', decidedBy: { id: 'ana', name: 'Ana' } }), queueCall('b')])
    await button('Take back: Write a.md').trigger('click')
    await settled()
    expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: false, takeBack: true }]])
    await update([queueCall('a'), queueCall('b')])
    expect(focusedCall()).toBe('a')
    expect(has('Approve: Write a.md')).toBe(true)
  })

  it('approves exactly the calls on the screen', async () => {
    show(three())
    await button('Approve all 3').trigger('click')
    expect(wrapper.emitted('decide-all')).toEqual([[{ callIds: ['a', 'b', 'c'], approved: true }]])
  })

  it('leaves a call pending that arrived between drawing and click', async () => {
    const calls = reactive(three())
    show(calls)
    const approveAll = button('Approve all 3').element as HTMLButtonElement
    calls.push(queueCall('d'))
    approveAll.click()
    await settled()
    expect(wrapper.emitted('decide-all')).toEqual([[{ callIds: ['a', 'b', 'c'], approved: true }]])
    expect(focusedCall()).toBe('d')
  })

  it('leaves out what needs its own look, and says so', async () => {
    show([queueCall('a'), queueCall('b', { drift: { since: '2026-11-20T09:30:00+00:00' } }), queueCall('c'), queueCall('d', { runsIn: { kind: 'remote', hosts: ['x.example'] }, annotations: { destructiveHint: true } })])
    const approve = button('Approve 2 (2 need their own look)')
    await approve.trigger('click')
    expect(wrapper.emitted('decide-all')).toEqual([[{ callIds: ['a', 'c'], approved: true }]])
  })

  it('approves all by Shift+A and rejects all with a reason by Shift+R', async () => {
    show(three())
    wrapper.vm.focusTray()
    await settled()
    await key('R', { shiftKey: true })
    const field = wrapper.get<HTMLInputElement>('.tray-input')
    expect(document.activeElement).toBe(field.element)
    await field.setValue('wrong branch')
    vi.advanceTimersByTime(GUARD_MS)
    await key('Enter')
    expect(wrapper.emitted('decide-all')).toEqual([[{ callIds: ['a', 'b', 'c'], approved: false, reason: 'wrong branch' }]])
    wrapper.unmount()
    show(three())
    wrapper.vm.focusTray()
    await settled()
    await key('A', { shiftKey: true })
    expect(wrapper.emitted('decide-all')).toEqual([[{ callIds: ['a', 'b', 'c'], approved: true }]])
  })

  it('runs what is approved and rejects the rest from the menu', async () => {
    show([queueCall('a', { status: 'approved' }), queueCall('b'), queueCall('c')])
    await button('More').trigger('click')
    vi.advanceTimersByTime(GUARD_MS)
    await button('Run the approved calls').trigger('click')
    expect(wrapper.emitted('decide-all')).toEqual([[{ callIds: ['b', 'c'], approved: false }]])
  })

  it('does not decide a call twice before the server answers, however long that takes', async () => {
    show([queueCall('a'), queueCall('b')])
    await button('Approve: Write a.md').trigger('click')
    await settled()
    await wrapper.findAll('.tray-row')[0]?.trigger('click')
    expect(has('Approve: Write a.md')).toBe(false)
    vi.advanceTimersByTime(60_000)
    await settled()
    expect(wrapper.text()).toContain('Sent, not yet confirmed')
    expect(has('Approve: Write a.md')).toBe(false)
    wrapper.vm.answered(['a'], false)
    await settled()
    expect(has('Approve: Write a.md')).toBe(true)
  })

  it('stays marked after the answer until the queue shows the decision', async () => {
    show([queueCall('a'), queueCall('b')])
    await button('Approve: Write a.md').trigger('click')
    wrapper.vm.answered(['a'], true)
    await wrapper.findAll('.tray-row')[0]?.trigger('click')
    expect(has('Approve: Write a.md')).toBe(false)
    await update([queueCall('a', { status: 'approved' }), queueCall('b')])
    expect(has('Take back: Write a.md')).toBe(true)
  })

  it('takes back what waits for the connection without telling the server', async () => {
    show([queueCall('a')])
    await wrapper.setProps({ isAway: true })
    vi.advanceTimersByTime(GUARD_MS)
    await button('Approve: Write a.md').trigger('click')
    expect(wrapper.get('.card-outcome').text()).toBe('Not sent yet. Sepal sends it when you are back online.')
    expect(has('Reject')).toBe(false)
    await button('Take back: Write a.md').trigger('click')
    expect(wrapper.emitted('undecide')).toEqual([['a']])
    expect(wrapper.emitted('decide')).toHaveLength(1)
    wrapper.vm.answered(['a'], false)
    await settled()
    expect(has('Reject: Write a.md')).toBe(true)
  })

  it('knows of a decision that was made before it was drawn', () => {
    wrapper = mount(ApprovalTray, { props: { calls: [queueCall('a')], now: NOW, me: 'ana', deciding: new Set(['a']) }, attachTo: document.body })
    expect(has('Approve')).toBe(false)
    expect(has('Take back')).toBe(false)
  })

  it('closes without a trace when everything ran', async () => {
    show([queueCall('a')])
    await button('Approve').trigger('click')
    await update([queueCall('a', { status: 'executing' })])
    expect(wrapper.find('section').exists()).toBe(false)
  })
})

describe('focus', () => {
  it('is not moved by a call that arrives', async () => {
    composer.focus()
    show([])
    await update([queueCall('a')])
    await update([queueCall('a'), queueCall('b')])
    expect(document.activeElement).toBe(composer)
  })

  it('goes to the next call after a decision, and leaves after the last one', async () => {
    show(three())
    wrapper.vm.focusTray()
    await settled()
    expect(focusedCall()).toBe('a')
    await key('a')
    expect(focusedCall()).toBe('b')
    vi.advanceTimersByTime(GUARD_MS)
    await update([queueCall('a', { status: 'approved' }), queueCall('b'), queueCall('c')])
    expect(focusedCall()).toBe('b')
    await key('a')
    expect(focusedCall()).toBe('c')
    vi.advanceTimersByTime(GUARD_MS)
    expect(wrapper.emitted('leave')).toBeUndefined()
    await key('a')
    expect(wrapper.emitted('leave')).toHaveLength(1)
    expect(wrapper.emitted('decide')).toHaveLength(3)
  })

  it('is never lost to the body when the focused call goes away', async () => {
    show([queueCall('a'), queueCall('b')])
    ;(button('Approve: Write a.md').element as HTMLElement).focus()
    await update([queueCall('b')])
    vi.advanceTimersByTime(3_000)
    await settled()
    expect(focusedCall()).toBe('b')
  })

  it('leaves when the tray empties under it', async () => {
    show([queueCall('a', { status: 'unknown' })])
    ;(button('It ran').element as HTMLElement).focus()
    await update([])
    await settled()
    expect(wrapper.emitted('leave')).toHaveLength(1)
  })
})

describe('what others do', () => {
  it('says who decided, and keeps the place for three seconds', async () => {
    show([queueCall('a')])
    await update([queueCall('a', { status: 'approved', decidedBy: { id: 'bo', name: 'Bo' } })])
    expect(wrapper.get('.card-outcome').text()).toBe('Approved by Bo')
    expect(has('Take back')).toBe(true)
    vi.advanceTimersByTime(3_000)
    await settled()
    expect(wrapper.find('section').exists()).toBe(false)
  })
})

describe('an unknown outcome', () => {
  it('is settled by the person', async () => {
    show([queueCall('a', { status: 'unknown' })])
    expect(wrapper.text()).toContain('It is unknown whether this ran.')
    await button("It didn't run").trigger('click')
    expect(wrapper.emitted('settle')).toEqual([[{ callId: 'a', happened: false }]])
    expect(wrapper.emitted('leave')).toHaveLength(1)
  })
})

describe('a phone', () => {
  beforeEach(() => {
    vi.stubGlobal('matchMedia', () => ({ matches: true, addEventListener: () => undefined, removeEventListener: () => undefined }))
  })

  it('shows one line until it is opened', async () => {
    show(three())
    await nextTick()
    expect(wrapper.get('section').text()).toContain('3 waiting')
    expect(has('Approve')).toBe(false)
    await button('3 waiting').trigger('click')
    await settled()
    expect(focusedCall()).toBe('a')
    expect(has('Approve: Write a.md')).toBe(true)
    expect(has('Approve all')).toBe(false)
    await button('More').trigger('click')
    expect(has('Approve all 3')).toBe(true)
  })

  it('closes when the focus goes to what it covers, and not while it moves inside', async () => {
    show(three())
    await nextTick()
    await button('3 waiting').trigger('click')
    await settled()
    ;(button('Approve').element as HTMLElement).focus()
    await settled()
    expect(has('Approve')).toBe(true)
    composer.focus()
    await settled()
    expect(has('Approve')).toBe(false)
    expect(wrapper.get('section').text()).toContain('3 waiting')
    expect(document.activeElement).toBe(composer)
  })
})

describe('calls that others have to approve', () => {
  let wrapper: VueWrapper<InstanceType<typeof ApprovalTray>>

  beforeEach(() => {
    vi.useFakeTimers()
    setActivePinia(createPinia())
    usePerson().me = { user: { id: 'ana', name: 'Ana', role: 'member' } } as Me
  })
  afterEach(() => {
    wrapper.unmount()
    vi.useRealTimers()
  })

  async function show(change: Partial<QueueCall>): Promise<void> {
    wrapper = mount(ApprovalTray, { props: { calls: [queueCall('a', change)], now: NOW, me: 'ana' }, attachTo: document.body })
    vi.advanceTimersByTime(GUARD_MS)
    // The line is loaded when it is first wanted.
    await vi.dynamicImportSettled()
    await flushPromises()
  }

  function approve() {
    return wrapper.findAll('button').find((one) => one.text().startsWith('Approve'))
  }

  it.each([
    ['somebody_else', 'someone other than the owner'],
    ['role:admin', 'someone with the role admin'],
  ])('says who must say yes and takes no yes that does not count: %s', async (who, words) => {
    await show({ approvers: [who] })
    expect(wrapper.text()).toContain(words)
    expect(wrapper.text()).toContain('Your approval does not count here.')
    expect(approve()?.attributes('disabled')).toBeDefined()
  })

  it('takes the yes of one of two, shows it, and takes it back', async () => {
    await show({ approvers: ['two'] })
    expect(approve()?.attributes('disabled')).toBeUndefined()
    await wrapper.setProps({ calls: [queueCall('a', { approvers: ['two'], consents: [{ id: 'ana', name: 'Ana' }] })] })
    vi.advanceTimersByTime(GUARD_MS)
    expect(wrapper.text()).toContain('1 so far: Ana approved.')
    expect(approve()?.attributes('disabled')).toBeDefined()
    const back = wrapper.findAll('button').find((one) => one.text() === 'Take back')
    await back?.trigger('click')
    expect(wrapper.emitted('decide')).toEqual([[{ callId: 'a', approved: false, takeBack: true }]])
  })

  it('takes a yes that counts for one of several', async () => {
    await show({ approvers: ['somebody_else', 'two'] })
    expect(approve()?.attributes('disabled')).toBeUndefined()
  })

  it('shows what somebody else changed beside what was asked for', async () => {
    await show({ approvers: ['owner', 'somebody_else'], args: { path: 'b.md', content: '' }, originalArgs: { path: 'a.md', content: '' }, editedBy: { id: 'bo', name: 'Bo' } })
    expect(wrapper.text()).toContain('Arguments changed by Bo, next to the original')
    expect(wrapper.get('.diff').text()).toContain('a.md')
    expect(wrapper.get('.diff').text()).toContain('b.md')
  })
})

describe('the cost of going on', () => {
  it('says what going on costs, and nothing of a cost of nothing', () => {
    const next = { tokens: 41_000, cachedTokens: 38_000, cost: 0.0312 }
    expect(goingOnWords(next)).toBe('Next step: about $0.031')
    expect(goingOnWords({ ...next, cost: null })).toBe('')
    expect(goingOnWords({ ...next, cost: 0 })).toBe('')
    expect(goingOnWords(null)).toBe('')
  })
})
