import { flushPromises, mount, type DOMWrapper, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { door as groupDoor } from '@/groups/groups'
import { refused, spyOnDoor } from '@/rules/testing'
import { TYPING_MS } from '@/rules/door'
import { rest } from '@/wire/rest'
import type { ServerItem, ServerTool } from '@/wire/restTypes'
import { commandWords, emptyConditions, emptyDraft, readDraft } from './formDraft'
import RuleForm from './RuleForm.vue'

it.each([
  ['git push', ['git', 'push']],
  ["  git  commit -m 'a b' ", ['git', 'commit', '-m', 'a b']],
  ['say "it\'s" \'\'', ['say', "it's", '']],
  ['$HOME', ['$HOME']],
  ['', []],
  ["git 'push", null],
])('reads the words of a command: %s', (text, words) => {
  expect(commandWords(text)).toEqual(words)
})

describe('readDraft', () => {
  it('sends only what the effect has', () => {
    const draft = { ...emptyDraft(), isBinding: true, isReviewed: true, hours: 8, name: ' Pushes ', except: [{ ...emptyConditions(), commands: [{ text: 'git push', more: false }] }] }
    const common = { scope: 'tenant', server: '*', tool: '*', when: {}, expiresInHours: 8, name: 'Pushes' }
    const except = [{ command: [{ words: ['git', 'push'], more: false }] }]
    expect(readDraft({ ...draft, effect: 'ask' }).rule).toEqual({ ...common, effect: 'ask', binding: true, reviewed: true, except })
    expect(readDraft({ ...draft, effect: 'deny' }).rule).toEqual({ ...common, effect: 'deny', except })
    expect(readDraft({ ...draft, effect: 'allow' }).rule).toEqual({ ...common, effect: 'allow' })
  })

  it('is for everybody, or for the members of a group', () => {
    expect(readDraft(emptyDraft()).rule).toMatchObject({ scope: 'tenant' })
    expect(readDraft({ ...emptyDraft(), group: 'grp_1' }).rule).toMatchObject({ scope: 'group', group: 'grp_1' })
  })

  it('says of each field what is not finished', () => {
    const when = { ...emptyConditions(), commands: [{ text: "git 'push", more: true }], paths: [{ argument: '', below: 'a' }], hosts: [{ argument: 'url', host: '' }], fits: 'schema' as const, json: '{' }
    const read = readDraft({ ...emptyDraft(), when, except: [emptyConditions()], matching: '[1]', other: '{"id":9007199254740993}' })
    expect(read.rule).toBe(null)
    expect(read.problems.map(({ where, code }) => `${where} ${code}`)).toEqual([
      'when.commands.0 quote', 'when.paths.0 argument', 'when.hosts.0 host', 'when.json json', 'except.0 empty', 'matching object', 'other inexact',
    ])
  })

  it.each([
    [{ commands: [{ text: ' ', more: true }] }, 'when.commands.0 command'],
    [{ commands: [{ text: 'ls', more: true }, { text: '', more: true }] }, 'when.commands.1 command'],
    [{ paths: [{ argument: ' ', below: '' }] }, 'when.paths.0 argument'],
    [{ hosts: [{ argument: 'url', host: '' }] }, 'when.hosts.0 host'],
    [{ hosts: [{ argument: '', host: '' }] }, 'when.hosts.0 argument'],
  ])('takes no line without words for a condition, or for none: %j', (change, problem) => {
    const read = readDraft({ ...emptyDraft(), effect: 'allow', when: { ...emptyConditions(), ...change } })
    expect(read.rule).toBe(null)
    expect(read.problems.map(({ where, code }) => `${where} ${code}`)).toEqual([problem])
  })

  it('lets any words follow only where a rule allows, or leaves something to others', () => {
    const when = { ...emptyConditions(), commands: [{ text: 'npm', more: true, anyWords: true }, { text: 'ls', more: false, anyWords: true }] }
    const wide = { command: [{ words: ['npm'], more: true, anyWords: true }, { words: ['ls'], more: false }] }
    expect(readDraft({ ...emptyDraft(), effect: 'allow', when }).rule?.when).toEqual(wide)
    expect(readDraft({ ...emptyDraft(), effect: 'deny', when }).rule?.when).toEqual({ command: [{ words: ['npm'], more: true }, { words: ['ls'], more: false }] })
    expect(readDraft({ ...emptyDraft(), effect: 'deny', except: [when] }).rule?.except).toEqual([wide])
  })

  it('holds arguments against exactly these, or a schema', () => {
    const of = (fits: 'exactly' | 'schema') => readDraft({ ...emptyDraft(), when: { ...emptyConditions(), fits, json: '{"a":1}' } }).rule?.when
    expect(of('exactly')).toEqual({ exactly: { a: 1 } })
    expect(of('schema')).toEqual({ schema: { a: 1 } })
  })

  it.each([
    ['', {}],
    [' 2.50 ', { costAboveUsd: 2.5 }],
    ['0', { costAboveUsd: 0 }],
    ['0.000001', { costAboveUsd: 0.000001 }],
    ['1000000', { costAboveUsd: 1_000_000 }],
    ['1000000.01', null],
    ['0.0000001', null],
    ['2,50', null],
    ['-1', null],
    ['$2', null],
    ['1e3', null],
    ['.', null],
  ])('reads what the session has cost: %j', (costAbove, when) => {
    const read = readDraft({ ...emptyDraft(), when: { ...emptyConditions(), costAbove } })
    expect(read.rule?.when ?? null).toEqual(when)
    expect(read.problems).toEqual(when === null ? [{ where: 'when.costAbove', code: 'cost' }] : [])
  })

  it('takes a cost as the only condition of an exception', () => {
    const costs = (costAbove: string) => readDraft({ ...emptyDraft(), except: [{ ...emptyConditions(), costAbove }] })
    expect(costs('5').rule?.except).toEqual([{ costAboveUsd: 5 }])
    expect(costs('x').problems).toEqual([{ where: 'except.0.costAbove', code: 'cost' }])
  })

  it.each([
    ['somebody_else', false, true],
    ['two', false, true],
    ['role:admin', false, true],
    ['owner', true, true],
    ['owner', false, false],
  ])('lets no model stand in for %s, with a fresh gesture: %j', (approvers, isFresh, isWrong) => {
    const draft = { ...emptyDraft(), isReviewed: true, approvers, isFresh }
    expect(readDraft(draft).problems).toEqual(isWrong ? [{ where: 'reviewed', code: 'reviewed' }] : [])
    expect(readDraft({ ...draft, isReviewed: false }).rule).toMatchObject({ ...(approvers !== 'owner' && { approvers }), ...(isFresh && { freshGesture: true }) })
    expect(readDraft({ ...draft, effect: 'deny' }).rule).toEqual({ effect: 'deny', scope: 'tenant', server: '*', tool: '*', when: {} })
  })
})

describe('RuleForm', () => {
  let form: VueWrapper
  let doors: ReturnType<typeof spyOnDoor>

  beforeEach(() => {
    vi.useFakeTimers()
    doors = spyOnDoor()
    vi.spyOn(rest, 'servers').mockResolvedValue({ items: [{ name: 'files' } as ServerItem], mayAdd: { installation: [], tenant: [], person: [] } })
    vi.spyOn(rest, 'serverTools').mockResolvedValue({ items: [{ name: 'write_file' } as ServerTool] })
    vi.spyOn(groupDoor, 'groups').mockResolvedValue({ items: [{ id: 'grp_1', name: 'Research', description: '', members: 2, createdAt: '2026-11-01T12:00:00Z' }], nextCursor: null })
    form = mount(RuleForm, { attachTo: document.body, global: { stubs: { RouterLink: { props: ['to'], template: '<a :href="to"><slot /></a>' } } } })
  })
  afterEach(() => {
    form.unmount()
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  const field = (label: string) => {
    const found = form.findAll('label').find((one) => one.text() === label)
    return form.get(`[id="${found?.attributes('for')}"]`)
  }
  /** What is said of a field beside its name. */
  const described = (of: Pick<DOMWrapper<Element>, 'attributes'> | undefined) =>
    of?.attributes('aria-describedby')?.split(' ').map((one) => form.get(`[id="${one}"]`).text()) ?? []
  const press = async (words: string) => {
    await form.findAll('button').find((button) => button.text() === words)?.trigger('click')
    await flushPromises()
  }
  const settle = async () => {
    await vi.advanceTimersByTimeAsync(TYPING_MS)
    await flushPromises()
  }

  it('offers the groups there are', async () => {
    await flushPromises()
    await field('For').setValue('grp_1')
    await settle()
    expect(doors.preview).toHaveBeenLastCalledWith(expect.objectContaining({ scope: 'group', group: 'grp_1' }))
  })

  it('suggests the servers there are, and the tools of one', async () => {
    await flushPromises()
    await field('Server').setValue('files')
    await settle()
    expect(form.findAll('datalist option').map((option) => option.attributes('value'))).toEqual(['files', 'write_file'])
  })

  it('shows the sentence before it saves exactly that rule', async () => {
    expect(form.text()).toContain('The rule appears here as a sentence before you save it.')
    await form.trigger('submit')
    expect(doors.give).not.toHaveBeenCalled()
    await form.get('input[value=deny]').setValue(true)
    await press('Add a command')
    await field('The command begins with').setValue('git push')
    await settle()
    const rule = { effect: 'deny', scope: 'tenant', server: '*', tool: '*', when: { command: [{ words: ['git', 'push'], more: true }] } }
    expect(doors.preview).toHaveBeenLastCalledWith(rule)
    expect(form.get('.sentence').text()).toContain('git')
    await form.trigger('submit')
    await flushPromises()
    expect(doors.give).toHaveBeenCalledExactlyOnceWith(rule)
    expect(form.emitted('given')).toHaveLength(1)
    expect(form.text()).toContain('The rule is saved and in force.')
    expect(form.findAll('input.wide')).toHaveLength(0)
  })

  it('has the name typed out before a rule lets every call run', async () => {
    doors.preview.mockResolvedValue({ sentence: 'Everything: always, …', confirm: 'execute_command' })
    await form.get('input[value=allow]').setValue(true)
    await field('Tool').setValue('execute_command')
    await settle()
    const save = form.get('button[type=submit]')
    expect(save.attributes('aria-disabled')).toBe('true')
    await form.trigger('submit')
    await field('Type execute_command to confirm').setValue('execute')
    await form.trigger('submit')
    expect(doors.give).not.toHaveBeenCalled()
    await field('Type execute_command to confirm').setValue('execute_command')
    expect(save.attributes('aria-disabled')).toBe('false')
    await form.trigger('submit')
    await flushPromises()
    expect(doors.give).toHaveBeenCalledExactlyOnceWith({ effect: 'allow', scope: 'tenant', server: '*', tool: 'execute_command', when: {}, confirm: 'execute_command' })
  })

  it('saves no rule with a command that was left empty', async () => {
    await form.get('input[value=allow]').setValue(true)
    await press('Add a command')
    await settle()
    expect(form.text()).toContain('Type the command, or remove this line.')
    await form.trigger('submit')
    expect(doors.give).not.toHaveBeenCalled()
    expect(doors.preview).not.toHaveBeenCalledWith(expect.objectContaining({ when: {}, tool: 'execute_command' }))
    await field('The command begins with').setValue('ls')
    await form.findAll('label.tick').find((label) => label.text() === 'also words that write files or run programs')?.get('input').setValue(true)
    await settle()
    expect(doors.preview.mock.lastCall?.[0].when).toEqual({ command: [{ words: ['ls'], more: true, anyWords: true }] })
  })

  it('warns before a model may approve calls', async () => {
    const tick = () => form.findAll('label.tick').find((label) => label.text() === 'Let a model approve these calls')
    await tick()?.get('input').setValue(true)
    expect(described(tick()?.get('input'))[0]).toMatch(/^Such a call can run without anyone seeing it\./)
    await settle()
    expect(doors.preview).toHaveBeenLastCalledWith({ effect: 'ask', scope: 'tenant', server: '*', tool: '*', when: {}, reviewed: true })
    await form.get('input[value=deny]').setValue(true)
    expect(tick()).toBeUndefined()
  })

  it('says why a model cannot approve what needs a passkey, and saves no such rule', async () => {
    const box = (words: string) => form.findAll('label.tick').find((label) => label.text() === words)?.get('input')
    await box('Each approval needs a passkey or password')?.setValue(true)
    await settle()
    const plain = { effect: 'ask', scope: 'tenant', server: '*', tool: '*', when: {} }
    expect(doors.preview).toHaveBeenLastCalledWith({ ...plain, freshGesture: true })
    const reviewed = box('Let a model approve these calls')
    await reviewed?.setValue(true)
    await settle()
    expect(reviewed?.attributes('aria-invalid')).toBe('true')
    expect(described(reviewed).at(-1)).toMatch(/^A model can approve only in place of/)
    await form.trigger('submit')
    expect(doors.give).not.toHaveBeenCalled()
    await box('Each approval needs a passkey or password')?.setValue(false)
    await settle()
    expect(reviewed?.attributes('aria-invalid')).toBe('false')
    expect(doors.preview).toHaveBeenLastCalledWith({ ...plain, reviewed: true })
  })

  it('names a cost that is none at its field', async () => {
    const cost = field('The session has cost more than')
    await cost.setValue('2,50')
    expect(cost.attributes('aria-invalid')).toBe('true')
    expect(described(cost)).toEqual(['US dollars', 'Type an amount from 0 to 1000000, for example 2.50.'])
    await cost.setValue('2.50')
    await settle()
    expect(cost.attributes('aria-invalid')).toBe('false')
    expect(doors.preview).toHaveBeenLastCalledWith({ effect: 'ask', scope: 'tenant', server: '*', tool: '*', when: { costAboveUsd: 2.5 } })
  })

  it('reads JSON while it is typed, and saves nothing that is none', async () => {
    await field('Arguments').setValue('schema')
    await form.get('textarea').setValue('{"type":')
    await settle()
    expect(form.text()).toContain('This is not valid JSON.')
    expect(form.get('textarea').attributes('aria-invalid')).toBe('true')
    await form.trigger('submit')
    expect(doors.give).not.toHaveBeenCalled()
    expect(form.text()).toContain('Arguments of a matching call, as JSON')
    await form.get('textarea').setValue('{"type":"object"}')
    await settle()
    expect(doors.preview.mock.lastCall?.[0].when).toEqual({ schema: { type: 'object' } })
  })

  it('says what it would have changed, and forgets that with the next change', async () => {
    const call = { session: 'ses_1', server: 'files', tool: 'write_file', at: '2026-11-21T10:00:00Z', before: 'allow', after: 'ask', because: 'asked by rule “a”' } as const
    doors.simulate.mockResolvedValue({ calls: 500, changed: [{ ...call, arguments: { path: 'a' } }], others: { calls: 40, concerned: 3 } })
    await field('Server').setValue('files')
    await settle()
    await press('Try it on recent calls')
    expect(doors.simulate).toHaveBeenCalledExactlyOnceWith({ effect: 'ask', scope: 'tenant', server: 'files', tool: '*', when: {} })
    const found = form.get('.simulation')
    expect(found.text()).toContain('It would have changed 1 of your last 500 calls.')
    expect(found.text()).toContain('Of the last 40 calls of other people, 3 used these tools.')
    expect(found.text()).toContain('write_file {"path":"a"}')
    expect(found.text()).toContain('Ran without asking, would be asked.')
    expect(found.findAll('a').map((link) => link.attributes('href'))).toEqual(['/s/ses_1'])
    await field('Server').setValue('other')
    expect(found.text()).not.toContain('It would have changed')
    expect(found.text()).not.toContain('of other people')
  })

  it('says why it is no rule', async () => {
    doors.preview.mockRejectedValue(refused(400, 'invalid_arguments', 'a folder must be relative to the workspace and without `..`'))
    await press('Add a folder')
    await field('is below').setValue('../x')
    await settle()
    expect(form.get('[role=alert]').text()).toContain('This rule is not possible: a folder must be relative')
  })
})
