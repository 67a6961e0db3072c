import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { door, goneRules } from '@/rules/door'
import { refused, ruleItem, SESSION, spyOnDoor } from '@/rules/testing'
import { factsOf } from '@/rules/types'
import { politeText } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import AllowHost from './AllowHost.vue'
import RulePanel, { groupsOf, leftoversOf } from './RulePanel.vue'

let panel: VueWrapper
let doors: ReturnType<typeof spyOnDoor>

beforeEach(() => {
  doors = spyOnDoor()
})
afterEach(() => {
  panel?.unmount()
  document.body.innerHTML = ''
  vi.restoreAllMocks()
})

async function show(props: Partial<{ session: string; keep: (rule: ReturnType<typeof ruleItem>) => boolean }> = {}): Promise<void> {
  panel = mount(RulePanel, {
    props: { title: 'My rules', none: 'None.', ...props },
    attachTo: document.body,
    global: { stubs: { RouterLink: { props: ['to'], template: '<a :href="to"><slot /></a>' } } },
  })
  await flushPromises()
}

const rows = () => panel.findAll('li').map((row) => row.text())
const press = async (words: string) => {
  await panel.findAll('button').find((button) => button.text() === words)?.trigger('click')
  await flushPromises()
}

it('groups by what counts first, and keeps the order in which they count', () => {
  const rules = [ruleItem('a', { effect: 'allow' }), ruleItem('b', { effect: 'deny' }), ruleItem('c', { effect: 'allow' })]
  expect(groupsOf(rules).map(({ effect, rules }) => [effect, rules.map(({ tool }) => tool)])).toEqual([
    ['deny', ['b']],
    ['allow', ['a', 'c']],
  ])
})

it('offers together only what lets less run when it is gone', () => {
  const rules = [
    ruleItem('unused', { isUnused: true }),
    ruleItem('over', { state: 'expired' }),
    ruleItem('used'),
    ruleItem('denies', { effect: 'deny', isUnused: true }),
    ruleItem('theirs', { isUnused: true, mayRemove: false }),
  ]
  expect(leftoversOf(rules).map(({ tool }) => tool)).toEqual(['unused', 'over'])
})

it('says of each rule what it does, where it comes from and how it was used', async () => {
  doors.rules.mockResolvedValue({
    rules: [
      ruleItem('tool:files/wipe', { id: 'tool:files/wipe', effect: 'deny', origin: 'tool', server: 'files', uses: 0, mayRemove: false }),
      ruleItem('b', { origin: 'settings', scope: 'installation', uses: 1, mayRemove: false, state: 'drifted' }),
      ruleItem('c', { uses: 1_200, until: '2026-12-01T10:00:00Z', name: 'Notes\u202E', state: 'expired' }),
    ],
  })
  await show()
  expect(panel.findAll('h3').map((head) => head.text())).toEqual(['Refused', 'Run without asking'])
  expect(rows()[0]).toContain("set on the server's page · never used")
  expect(panel.get('li a').attributes('href')).toBe('/servers/files')
  expect(rows()[1]).toContain('set by the installation · used once')
  expect(rows()[1]).toContain("The tool's definition changed")
  expect(rows()[2]).toContain('Notes⟦U+202E⟧')
  expect(rows()[2]).toContain('Always, for you, run c of files without asking.')
  expect(rows()[2]).toContain('used 1,200 times')
  expect(rows()[2]).toContain('It has expired')
  expect(panel.findAll('li button').map((button) => button.attributes('aria-label'))).toEqual(['Take back the rule: Always, for you, run `c` of `files` without asking.'])
})

it('takes a rule back by one click, says what that means, and keeps the focus', async () => {
  doors.rules.mockResolvedValue({ rules: [ruleItem('a')] })
  await show()
  panel.get<HTMLButtonElement>('li button').element.focus()
  await press('Take back')
  expect(doors.takeBack).toHaveBeenCalledExactlyOnceWith('rul_a', undefined)
  expect(rows()).toEqual([])
  expect(panel.text()).toContain('Rule removed. The next call asks again.')
  expect(panel.text()).toContain('None.')
  expect(politeText.value).toContain('Rule removed.')
  expect(document.activeElement).toBe(panel.get('h2').element)
  expect(goneRules.has('rul_a')).toBe(true)
})

it('names the session for a rule of it, and not for another', async () => {
  doors.rules.mockResolvedValue({ rules: [ruleItem('a', { scope: 'session', origin: 'session' }), ruleItem('b')] })
  await show({ session: SESSION, keep: ({ scope }) => scope === 'session' })
  expect(doors.rules).toHaveBeenCalledWith(SESSION)
  expect(rows()).toHaveLength(1)
  await press('Take back')
  expect(doors.takeBack).toHaveBeenCalledExactlyOnceWith('rul_a', SESSION)
})

it('takes back together what is of no use', async () => {
  doors.rules.mockResolvedValue({ rules: [ruleItem('a', { isUnused: true }), ruleItem('b', { state: 'expired' }), ruleItem('c')] })
  // Somebody was faster.
  doors.takeBack.mockRejectedValueOnce(refused(404, 'not_found', 'there is no such rule'))
  await show()
  expect(panel.text()).toContain('2 rules let calls run, but have ended or were not used for 30 days.')
  await press('Take all 2 back')
  expect(doors.takeBack.mock.calls.map(([id]) => id)).toEqual(['rul_a', 'rul_b'])
  expect(rows()).toHaveLength(1)
})

it('says in the words of the server what was not done, and what was not read', async () => {
  doors.rules.mockResolvedValue({ rules: [ruleItem('a')] })
  doors.takeBack.mockRejectedValue(refused(409, 'not_allowed', "only admins take the tenant's rules back"))
  await show()
  await press('Take back')
  expect(panel.get('[role=alert]').text()).toContain("Not removed: only admins take the tenant's rules back")
  expect(rows()).toHaveLength(1)
  panel.unmount()
  doors.rules.mockRejectedValueOnce(refused(0, 'offline', ''))
  await show()
  expect(panel.get('[role=alert]').text()).toContain('The rules could not be loaded. The server does not answer.')
  await press('Try now')
  expect(rows()).toHaveLength(1)
})

describe('the groups', () => {
  it('lists what commands may reach apart from what decides calls', () => {
    const hosts = ruleItem('hosts', { scope: 'session', origin: 'session', network: ['pypi.org'], uses: 0 })
    const groups = groupsOf([hosts, ruleItem('read')]).map((group) => [group.effect, group.rules.length])
    expect(groups).toEqual([
      ['allow', 1],
      ['network', 1],
    ])
    expect(factsOf(hosts)).not.toContain('never used')
    expect(factsOf(ruleItem('read', { uses: 0 }))).toContain('never used')
  })
})

describe('allowing a host', () => {
  function show() {
    return mount(AllowHost, { props: { session: SESSION }, global: { plugins: [i18n] } })
  }

  beforeEach(() => vi.restoreAllMocks())

  it('lets commands of the session reach a host that is written down', async () => {
    const give = vi.spyOn(door, 'give').mockResolvedValue({} as never)
    const shown = show()
    const input = shown.get('input')
    expect(shown.get('label').attributes('for')).toBe(input.attributes('id'))
    await shown.get('form').trigger('submit')
    expect(give).not.toHaveBeenCalled()
    await input.setValue(' pypi.org ')
    await shown.get('form').trigger('submit')
    await flushPromises()
    expect(give).toHaveBeenCalledWith({ effect: 'allow', scope: 'session', session: SESSION, network: ['pypi.org'] })
    expect(shown.emitted('given')).toHaveLength(1)
    expect((input.element as HTMLInputElement).value).toBe('')
  })

  it('says what is wrong and keeps what was written', async () => {
    vi.spyOn(door, 'give').mockRejectedValue(new RequestError(400, { detail: '`*`: it is too wide' } as never))
    const shown = show()
    await shown.get('input').setValue('*')
    await shown.get('form').trigger('submit')
    await flushPromises()
    expect(shown.get('[role=alert]').text()).toContain('too wide')
    expect((shown.get('input').element as HTMLInputElement).value).toBe('*')
    expect(shown.get('input').attributes('aria-describedby')).toBe(shown.get('[role=alert]').attributes('id'))
  })
})
