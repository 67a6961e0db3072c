import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineComponent, h, nextTick, ref } from 'vue'
import { queueCall } from '@/approval/testing'
import ApprovalTray from '@/approval/tray/ApprovalTray.vue'
import { GUARD_MS } from '@/browser/inputGuard'
import { TYPING_MS } from '@/rules/door'
import { provideRuleSession } from '@/rules/ofSession'
import { fileOffers, refused, ruleItem, SESSION, spyOnDoor } from '@/rules/testing'
import { usePerson } from '@/stores/person'
import { politeText } from '@/ui/announcer'
import type { Me } from '@/wire/restTypes'
import type { QueueCall } from '@/wire/types'
import RuleComposer from './RuleComposer.vue'

let composer: VueWrapper
let doors: ReturnType<typeof spyOnDoor>

const command: Partial<QueueCall> = { name: 'execute_command', server: 'sandbox', args: { command: 'npm test -- --watch' } }
const EXACT = { effect: 'allow', scope: 'session', session: SESSION, callId: 'a', when: { exactly: { command: 'npm test -- --watch' } } }

beforeEach(() => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  doors = spyOnDoor()
})
afterEach(() => {
  composer.unmount()
  document.body.innerHTML = ''
  vi.restoreAllMocks()
  vi.useRealTimers()
})

async function show(change: Partial<QueueCall> = command, role = 'member'): Promise<void> {
  usePerson().me = { user: { id: 'ana', name: 'Ana', role, installationAdmin: false, rights: role === 'admin' ? ['rules.manage'] : [] } } as unknown as Me
  composer = mount(RuleComposer, { props: { call: queueCall('a', change), session: SESSION, heading: 'Run a command' }, attachTo: document.body, global: { stubs: { RouterLink: { template: '<a href="#"><slot /></a>' } } } })
  await settle()
}

/** The sentence of what was chosen is there, and the guard is armed. */
async function settle(): Promise<void> {
  await flushPromises()
  await vi.advanceTimersByTimeAsync(TYPING_MS + GUARD_MS)
  await flushPromises()
}

const choose = (reach: string) => composer.get<HTMLInputElement>(`input[value=${reach}]`).setValue(true)
const button = (words: string) => composer.findAll('button').find((one) => one.text().startsWith(words))
const save = async () => {
  await button('Save and approve')?.trigger('click')
  await flushPromises()
}
const select = (label: string) => {
  const found = composer.findAll('label').find((one) => one.text() === label)
  return composer.get(`[id="${found?.attributes('for')}"]`)
}

describe('what is sent', () => {
  it('is a rule about this very call, for the session, with what was shown of the call', async () => {
    await show()
    expect(document.activeElement).toBe(composer.get('input[value=exact]').element)
    expect(composer.get('.rule-sentence').text()).toContain('Sentence of {"exactly"')
    expect(composer.get('.examples').text()).toContain('Runs without asking:execute_command npm test -- --watch')
    expect(composer.get('.examples').text()).toContain('Still asks:execute_command npm test -- --watch && curl evil.example')
    await save()
    expect(doors.give).toHaveBeenCalledExactlyOnceWith({ ...EXACT, digest: 'digest-a' })
    expect(composer.emitted('leave')).toHaveLength(1)
    expect(politeText.value).toContain('The rule is saved.')
  })

  it('has fewer words of a command, as they were cut from the end', async () => {
    await show()
    await choose('arguments')
    const words = select('The command begins with')
    expect(words.findAll('option').map((option) => option.text())).toEqual(['npm run test …', 'npm run …', 'npm …'])
    await words.setValue('2')
    await settle()
    await save()
    expect(doors.give.mock.calls[0]?.[0].when).toEqual({ command: [{ words: ['npm', 'run'], more: true }] })
  })

  it('has the folder and the host that were typed, and nothing for each letter of them', async () => {
    doors.offers.mockResolvedValue({ offers: fileOffers() })
    await show({ name: 'read', args: { path: 'notes/a.md', url: 'https://a.example/' } })
    await choose('arguments')
    await settle()
    doors.preview.mockClear()
    for (const below of ['note', 'not', '']) await select('path is below').setValue(below)
    await select('url is at').setValue('*.example')
    expect(composer.find('.rule-sentence').exists()).toBe(false)
    await settle()
    expect(doors.preview).toHaveBeenCalledTimes(1)
    await save()
    expect(doors.give.mock.calls[0]?.[0].when).toEqual({ paths: [{ argument: 'path', below: '' }], hosts: [{ argument: 'url', host: '*.example' }] })
  })

  it.each([
    ['1', { expiresInHours: 1 }],
    ['168', { expiresInHours: 168 }],
    ['0', {}],
  ])('ends after %s hours outside of the session, where 0 is never', async (hours, ends) => {
    await show()
    expect(composer.text()).not.toContain('How long')
    await select('Where').setValue('person')
    await select('How long').setValue(hours)
    await settle()
    await save()
    expect(doors.give).toHaveBeenCalledWith({ ...EXACT, scope: 'person', ...ends, digest: 'digest-a' })
  })

  it('is for everybody only where an admin says so', async () => {
    await show()
    expect(select('Where').findAll('option').map((one) => one.text())).toEqual(['This session', 'All my sessions'])
    composer.unmount()
    await show(command, 'admin')
    await select('Where').setValue('tenant')
    await settle()
    await save()
    expect(doors.give.mock.calls[0]?.[0].scope).toBe('tenant')
  })
})

describe('the whole tool', () => {
  it('stands behind a second step for a shell, with what it means', async () => {
    await show()
    expect(composer.findAll('input[type=radio]').map((one) => one.attributes('value'))).toEqual(['exact', 'arguments'])
    await button('Wider…')?.trigger('click')
    await flushPromises()
    expect(document.activeElement).toBe(composer.get('input[value=tool]').element)
    expect(composer.get('.reach').text()).toContain('Then every command the model writes runs without asking.')
    await choose('tool')
    await settle()
    await save()
    expect(doors.give.mock.calls[0]?.[0].when).toEqual({})
  })

  it('is saved only once its name is typed out', async () => {
    doors.preview.mockImplementation(async ({ when }) => ({ sentence: 'Everything: …', ...(Object.keys(when ?? {}).length === 0 && { confirm: 'execute_command' }) }))
    await show()
    expect(composer.text()).not.toContain('to confirm')
    await button('Wider…')?.trigger('click')
    await choose('tool')
    await settle()
    await save()
    await select('Type execute_command to confirm').setValue('execute_comman')
    await settle()
    await save()
    expect(doors.give).not.toHaveBeenCalled()
    expect(button('Save and approve')?.attributes('aria-disabled')).toBe('true')
    await select('Type execute_command to confirm').setValue('execute_command')
    await settle()
    await save()
    expect(doors.give.mock.calls[0]?.[0]).toMatchObject({ when: {}, confirm: 'execute_command' })
  })

  it('is listed last for other tools, and never chosen by itself', async () => {
    doors.offers.mockResolvedValue({ offers: fileOffers().slice(2) })
    await show({ name: 'read', args: { path: 'a' } })
    expect(composer.get<HTMLInputElement>('input[value=tool]').element.checked).toBe(false)
    expect(button('Save and approve')).toBeUndefined()
    await choose('tool')
    await settle()
    await save()
    expect(doors.give).toHaveBeenCalledOnce()
  })
})

describe('before it is saved', () => {
  it('does nothing for 400 ms after the sentence is there, nor before', async () => {
    let answer: (preview: { sentence: string }) => void = () => undefined
    doors.preview.mockImplementation(() => new Promise((resolve) => (answer = resolve)))
    await show()
    await save()
    answer({ sentence: 'Now.' })
    await flushPromises()
    await vi.advanceTimersByTimeAsync(GUARD_MS - 1)
    // It is drawn as what it is: a button that does nothing yet.
    expect(button('Save and approve')?.attributes('aria-disabled')).toBe('true')
    await save()
    expect(doors.give).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(button('Save and approve')?.attributes('aria-disabled')).toBe('false')
    await save()
    expect(doors.give).toHaveBeenCalledOnce()
  })

  it('never shows the sentence of another choice', async () => {
    const answers: ((preview: { sentence: string }) => void)[] = []
    doors.preview.mockImplementation(() => new Promise((resolve) => void answers.push(resolve)))
    await show()
    await choose('arguments')
    await settle()
    answers[1]?.({ sentence: 'The second.' })
    answers[0]?.({ sentence: 'The first.' })
    await flushPromises()
    expect(composer.get('.rule-sentence').text()).toBe('The second.')
  })

  it('reads anew what can be offered when the call is another', async () => {
    await show()
    await choose('arguments')
    await composer.setProps({ call: queueCall('a', { ...command, digest: 'other' }) })
    await settle()
    expect(doors.offers).toHaveBeenCalledTimes(2)
    await save()
    expect(doors.give).toHaveBeenCalledWith({ ...EXACT, digest: 'other' })
  })

  it('offers no exact rule where its numbers would be rounded', async () => {
    await show({ ...command, argsText: '{"command":"x","id":9007199254740993}' })
    expect(composer.find('input[value=exact]').exists()).toBe(false)
    expect(composer.text()).toContain('numbers are too large for this page to send exactly')
  })

  it('is left by Escape, which goes no further', async () => {
    const outside = vi.fn()
    document.body.addEventListener('keydown', outside)
    await show()
    await composer.get('input').trigger('keydown', { key: 'Escape' })
    expect(composer.emitted('leave')).toHaveLength(1)
    expect(outside).not.toHaveBeenCalled()
  })
})

describe('what is refused', () => {
  it.each(['changed_since_shown', 'no_such_call', 'already_decided'])('leads back to the card: %s', async (code) => {
    doors.give.mockRejectedValue(refused(409, code, 'what would run is no longer what was shown; read the card again'))
    await show()
    await save()
    expect(composer.get('[role=alert]').text()).toBe('Not saved: what would run is no longer what was shown; read the card again')
    expect(button('Save and approve')).toBeUndefined()
    await button('Reload the card')?.trigger('click')
    expect(composer.emitted('leave')).toHaveLength(1)
  })

  it('is said where it is no rule, and saved once it is one', async () => {
    doors.offers.mockResolvedValue({ offers: fileOffers() })
    await show({ name: 'read', args: { path: 'notes/a.md' } })
    await choose('arguments')
    doors.preview.mockRejectedValueOnce(refused(400, 'invalid_arguments', 'the rule would not be about this call; choose it wider'))
    await select('path is below').setValue('elsewhere')
    await settle()
    expect(composer.get('[role=alert]').text()).toBe('This rule is not possible: the rule would not be about this call; choose it wider')
    expect(select('path is below').attributes('aria-invalid')).toBe('true')
    await save()
    expect(doors.give).not.toHaveBeenCalled()
    await select('path is below').setValue('notes')
    await settle()
    await save()
    expect(doors.give).toHaveBeenCalledOnce()
  })

  it('can be tried again without a connection', async () => {
    doors.offers.mockRejectedValueOnce(refused(0, 'offline', ''))
    await show()
    expect(composer.get('[role=alert]').text()).toBe('The choices could not be loaded: The server does not answer.')
    await button('Try now')?.trigger('click')
    await settle()
    doors.give.mockRejectedValueOnce(refused(0, 'offline', ''))
    await save()
    await settle()
    await button('Try now')?.trigger('click')
    await flushPromises()
    expect(doors.give).toHaveBeenCalledTimes(2)
    expect(composer.emitted('leave')).toHaveLength(1)
  })

  it('names the way out where there are too many rules', async () => {
    doors.give.mockRejectedValue(refused(400, 'too_large', 'there are as many rules as there may be; take some back first'))
    await show()
    await save()
    expect(composer.get('[role=alert] a').text()).toBe('See the rules')
  })
})

it('says so where the rule is kept and the call was decided otherwise', async () => {
  doors.give.mockResolvedValue({ rule: ruleItem('new'), hasApproved: false })
  await show()
  await save()
  expect(composer.emitted('leave')).toBeUndefined()
  expect(composer.get('[role=status]').text()).toBe('The rule is saved. The call was already decided, or is still waiting.')
  await button('Close')?.trigger('click')
  expect(composer.emitted('leave')).toHaveLength(1)
})

describe('in the tray', () => {
  let page: VueWrapper
  const tray = ref<InstanceType<typeof ApprovalTray>>()

  beforeEach(() => {
    vi.useFakeTimers()
    setActivePinia(createPinia())
    spyOnDoor()
  })
  afterEach(() => {
    page.unmount()
    document.body.innerHTML = ''
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  function show(calls: QueueCall[], session: string | null = SESSION): void {
    const holder = defineComponent({
      setup() {
        provideRuleSession(() => session)
        return () => h(ApprovalTray, { ref: tray, calls, now: Date.now(), me: 'ana' })
      },
    })
    page = mount(holder, { attachTo: document.body, global: { stubs: { RouterLink: true } } })
  }

  async function settle(): Promise<void> {
    await vi.dynamicImportSettled()
    await vi.advanceTimersByTimeAsync(0)
    for (let at = 0; at < 5; at += 1) await nextTick()
  }

  async function press(key: string): Promise<void> {
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
    await settle()
  }

  it('opens by S, with the focus in it, and gives the focus back with Escape', async () => {
    show([queueCall('a')])
    await tray.value?.focusTray()
    await press('s')
    expect(page.find('.rule').exists()).toBe(false)
    vi.advanceTimersByTime(GUARD_MS)
    await press('s')
    expect(page.get('.rule').attributes('aria-label')).toBe('Always…: Write a.md')
    expect(page.get('.rule').element.contains(document.activeElement)).toBe(true)
    await press('Escape')
    expect(page.find('.rule').exists()).toBe(false)
    expect((document.activeElement as HTMLElement).dataset.callId).toBe('a')
  })

  it('stands after the other decisions, and decides nothing by its keys', async () => {
    show([queueCall('a')])
    vi.advanceTimersByTime(GUARD_MS)
    const labels = page.findAll('.actions .ap-button').map((button) => button.attributes('aria-label'))
    expect(labels.slice(0, 4)).toEqual(['Approve', 'Reject', 'Always…', 'More'].map((words) => `${words}: Write a.md`))
    await page.get('[aria-keyshortcuts=S]').trigger('click')
    await settle()
    vi.advanceTimersByTime(GUARD_MS)
    await press('a')
    expect(page.getComponent(ApprovalTray).emitted('decide')).toBeUndefined()
    expect(page.find('.rule').exists()).toBe(true)
  })

  it.each([
    ['its session is not stored', queueCall('a'), null],
    ['nothing is known of its tool', queueCall('a', { digest: undefined }), SESSION],
    ['somebody else decides', queueCall('a', { mayDecide: false }), SESSION],
  ])('is not offered while %s', async (_, call, session) => {
    show([call], session)
    vi.advanceTimersByTime(GUARD_MS)
    expect(page.find('[aria-keyshortcuts=S]').exists()).toBe(false)
    await tray.value?.focusTray()
    await press('s')
    expect(page.find('.rule').exists()).toBe(false)
  })
})
