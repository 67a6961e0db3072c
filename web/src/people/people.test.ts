import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { nextTick, reactive } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { door as groupDoor } from '@/groups/groups'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import { politeText } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import type { Me, Right } from '@/wire/restTypes'
import { ago } from './ago'
import { door, findPeople, type Invitation, type Person, type Role } from './door'
import { filtersOf, isEverybody, queryOf, requestOf } from './filters'
import InvitationList from './InvitationList.vue'
import InviteDialog from './InviteDialog.vue'
import PeopleSection from './PeopleSection.vue'
import { mayChange, rolesToGive } from './roles'

const AT = '2026-11-01T12:00:00Z'
const route = reactive<{ query: Record<string, string> }>({ query: {} })

vi.mock('vue-router', () => ({
  RouterLink: { template: '<a><slot /></a>' },
  useRoute: () => route,
  useRouter: () => ({ push: vi.fn(), replace: async ({ query }: { query: Record<string, string> }) => (route.query = query) }),
}))

let listed: Person[]
let invitations: Invitation[]

function one(name: string, role: Role, more: Partial<Person> = {}): Person {
  return { id: `usr_${name}`, name, serviceAccount: false, role, installationAdmin: false, disabled: false, hasPassword: true, passkeys: 0, passkeyOnly: false, sessions: 0, createdAt: AT, lastSeenAt: null, ...more }
}

/** The rights that count here, as the server gives them to a role. */
function rightsOf(role: Role, installationAdmin: boolean): Right[] {
  if (installationAdmin || role === 'owner') return ['people.manage', 'people.manage_admins']
  return role === 'admin' ? ['people.manage'] : []
}

function me(role: Role, more: { installationAdmin?: boolean; authMode?: string } = {}): Me {
  const { installationAdmin = false, authMode = 'password' } = more
  return {
    user: { id: 'usr_ana', name: 'ana', role, installationAdmin, rights: rightsOf(role, installationAdmin) },
    tenant: { id: 'tnt_1', name: 'acme' },
    csrfToken: 't',
    installation: { name: 'Sepal', version: '1.0.0' },
    authMode,
    encrypted: false,
  } as unknown as Me
}

function invitation(id: string, more: Partial<Invitation> = {}): Invitation {
  return { id, role: 'member', note: '', invitedBy: 'usr_ana', createdAt: AT, expiresAt: '2999-01-01T00:00:00Z', usedBy: null, usedAt: null, ...more }
}

const no = (detail: string) => new RequestError(403, { code: 'not_allowed', detail })

beforeEach(() => {
  setActivePinia(createPinia())
  route.query = {}
  listed = [one('ana', 'owner'), one('ben', 'member', { sessions: 3 }), one('cleo', 'admin')]
  invitations = []
  vi.spyOn(door, 'people').mockImplementation(async (query) => {
    const fits = listed.filter((person) => !query?.role || person.role === query.role)
    return { items: fits, total: fits.length, nextCursor: null }
  })
  vi.spyOn(door, 'serviceAccounts').mockImplementation(async () => ({ items: [], nextCursor: null }))
  vi.spyOn(door, 'invitations').mockImplementation(async () => ({ items: [...invitations], nextCursor: null }))
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show(as: Me) {
  usePerson().me = as
  const part = mount(PeopleSection, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return part
}

type Part = Awaited<ReturnType<typeof show>>

const rows = (part: Part) => part.findAll('tbody tr')

function rowOf(part: Part, name: string) {
  const found = rows(part).find((row) => row.get('.name').text() === name)
  if (!found) throw new Error(`${name} is not listed`)
  return found
}

/** Presses a button of the dialog that is open. */
async function press(name: string) {
  const button = [...document.querySelectorAll<HTMLElement>('[role=dialog] button')].find((it) => it.textContent?.trim() === name)
  if (!button) throw new Error(`no dialog has the button ${name}`)
  button.click()
  await flushPromises()
}

const dialog = () => document.querySelector('[role=dialog]')?.textContent ?? ''

it('lets admins change viewers and members, and owners and installation admins everybody', () => {
  expect(rolesToGive(me('member'))).toEqual([])
  expect(rolesToGive(me('admin'))).toEqual(['viewer', 'approver', 'member'])
  expect(rolesToGive(me('owner'))).toEqual(['viewer', 'approver', 'member', 'admin', 'owner'])
  expect(rolesToGive(me('member', { installationAdmin: true }))).toHaveLength(5)
  expect(mayChange(me('admin'), one('x', 'member'))).toBe(true)
  expect(mayChange(me('admin'), one('x', 'admin'))).toBe(false)
  expect(mayChange(me('owner'), one('x', 'owner'))).toBe(true)
  expect(mayChange(me('owner'), one('x', 'viewer', { installationAdmin: true }))).toBe(false)
})

it('keeps the filters in the address, and asks the server for what they say', () => {
  expect(queryOf(filtersOf({}))).toEqual({})
  expect(isEverybody(filtersOf({ sort: 'role' }))).toBe(true)
  const query = { search: 'be', role: 'member', state: 'disabled', sort: 'last_seen' }
  expect(queryOf(filtersOf(query))).toEqual(query)
  expect(requestOf(filtersOf(query))).toEqual({ search: 'be', role: 'member', disabled: true, sort: 'last_seen' })
  expect(filtersOf({ role: 'king', state: 'x', sort: 'shoes', search: ['a'] })).toEqual(filtersOf({}))
})

it('says how long ago somebody was here', () => {
  const now = Date.parse('2026-11-29T12:00:00Z')
  expect(ago('2026-11-29T11:56:00Z', now)).toBe('Just now')
  expect(ago('2026-11-29T11:40:00Z', now)).toBe('20 minutes ago')
  expect(ago('2026-11-29T09:00:00Z', now)).toBe('3 hours ago')
  expect(ago('2026-11-28T09:00:00Z', now)).toBe('yesterday')
  expect(ago('2026-03-01T09:00:00Z', now)).toContain('2026')
})

it('finds people by their ids on as many pages as it takes', async () => {
  const people = vi.spyOn(door, 'people')
  people.mockResolvedValueOnce({ items: [one('ana', 'owner')], total: 2, nextCursor: 'c' })
  people.mockResolvedValueOnce({ items: [one('ben', 'member')], total: 2, nextCursor: null })
  expect([...(await findPeople(['usr_ben', 'usr_gone'])).keys()]).toEqual(['usr_ben'])
  expect(people).toHaveBeenCalledTimes(2)
  expect((await findPeople([])).size).toBe(0)
  expect(people).toHaveBeenCalledTimes(2)
})

describe('the list', () => {
  it('offers an owner everything but what would leave the team without one', async () => {
    const part = await show(me('owner'))
    expect(rowOf(part, 'ana').text()).toContain('you')
    expect(rowOf(part, 'ana').text()).toContain('The only owner.')
    expect(rowOf(part, 'ana').find('select').exists()).toBe(false)
    expect(rowOf(part, 'ana').find('input').exists()).toBe(false)
    expect(rowOf(part, 'ben').findAll('option').map((option) => option.text())).toEqual(['Viewer', 'Approver', 'Member', 'Admin', 'Owner'])
    listed.push(one('dan', 'owner'))
    const two = await show(me('owner'))
    expect(rowOf(two, 'ana').find('select').exists()).toBe(true)
  })

  it('offers an admin what admins may do, and says who may do more', async () => {
    const part = await show(me('admin'))
    expect(part.text()).toContain('owners can change everyone')
    expect(rowOf(part, 'cleo').find('select, input, button').exists()).toBe(false)
    expect(rowOf(part, 'ben').findAll('option').map((option) => option.text())).toEqual(['Viewer', 'Approver', 'Member'])
  })

  it('tells those who administer nobody, and asks nothing', async () => {
    const part = await show(me('member'))
    expect(part.text()).toContain('Only admins see who is in a team.')
    expect(door.people).not.toHaveBeenCalled()
    expect(door.invitations).not.toHaveBeenCalled()
  })

  it('says how people can be invited where nobody signs in', async () => {
    const part = await show(me('owner', { authMode: 'none' }))
    expect(part.text()).toContain('Nobody signs in here')
    expect(part.find('#invite').exists()).toBe(false)
  })

  it('changes a role at once, and says why not at the row', async () => {
    const change = vi.spyOn(door, 'change').mockImplementation(async (id, { role }) => one('ben', role ?? 'member', { id }))
    const part = await show(me('owner'))
    await rowOf(part, 'ben').get('select').setValue('viewer')
    await flushPromises()
    expect(change).toHaveBeenCalledWith('usr_ben', { role: 'viewer' })
    expect(politeText.value).toContain('ben: Viewer')
    change.mockRejectedValueOnce(no('not today'))
    await rowOf(part, 'ben').get('select').setValue('member')
    await flushPromises()
    expect(rowOf(part, 'ben').get('[role=alert]').text()).toBe('Not changed: not today')
    expect(rowOf(part, 'ben').get('select').element.value).toBe('viewer')
  })

  it('asks before somebody becomes an admin, and stays open with the reason where that is refused', async () => {
    const change = vi.spyOn(door, 'change').mockRejectedValueOnce(no('not today'))
    const part = await show(me('owner'))
    await rowOf(part, 'ben').get('select').setValue('admin')
    await flushPromises()
    expect(dialog()).toContain('Make ben an admin?')
    expect(rowOf(part, 'ben').get('select').element.value).toBe('member')
    expect(change).not.toHaveBeenCalled()
    await press('Change role')
    expect(dialog()).toContain('That did not work: not today')
    change.mockResolvedValueOnce(one('ben', 'admin'))
    await press('Change role')
    expect(rowOf(part, 'ben').get('select').element.value).toBe('admin')
  })

  it('changes several with a request each, and lists whatever failed', async () => {
    listed.push(one('dan', 'viewer'))
    const change = vi.spyOn(door, 'change').mockImplementation(async (id) => {
      if (id === 'usr_dan') throw no('dan is busy')
      return { ...(listed.find((person) => person.id === id) ?? one('x', 'member')), disabled: true }
    })
    const part = await show(me('owner'))
    await part.get('#select-people').setValue(true)
    expect(part.get('.bar .count').text()).toBe('3 people selected')
    const disable = part.findAll('.bar button').find((button) => button.text() === 'Disable…')
    await disable?.trigger('click')
    await flushPromises()
    expect(dialog()).toContain('Disable 3 people?')
    expect(dialog()).toContain('ben, cleo, dan')
    await press('Disable')
    expect(change.mock.calls.map(([id]) => id)).toEqual(['usr_ben', 'usr_cleo', 'usr_dan'])
    expect(politeText.value).toContain('2 people changed, 1 failed')
    expect(part.get('.failures').text()).toContain('dan: dan is busy')
    expect(part.get('.bar .count').text()).toBe('1 person selected')
    expect(rowOf(part, 'ben').text()).toContain('Disabled')
  })

  it('signs several out, and adds them to a group, a few requests at a time', async () => {
    for (const name of ['dan', 'eve', 'fay', 'gus']) listed.push(one(name, 'member'))
    vi.spyOn(groupDoor, 'groups').mockResolvedValue({ items: [{ id: 'grp_1', name: 'Finance', description: '', members: 0, createdAt: '2026-11-01T12:00:00Z' }], nextCursor: null })
    let running = 0
    let most = 0
    const work = async () => {
      running += 1
      most = Math.max(most, running)
      await Promise.resolve()
      running -= 1
      return undefined
    }
    const signOut = vi.spyOn(door, 'signOut').mockImplementation(work)
    const join = vi.spyOn(groupDoor, 'join').mockImplementation(async (_, id) => {
      await work()
      if (id === 'usr_eve') throw no('eve is gone')
      return undefined
    })
    const boss = me('owner')
    boss.user.rights.push('groups.manage')
    const part = await show(boss)
    await part.get('#select-people').setValue(true)
    await flushPromises()
    const inBar = (text: string) => part.findAll('.bar button').find((button) => button.text() === text)
    await part.get('.bar select[aria-label="Group to add them to"]').setValue('grp_1')
    await inBar('Add to group…')?.trigger('click')
    await flushPromises()
    expect(dialog()).toContain('Add 6 people to Finance?')
    await press('Add')
    expect(join).toHaveBeenCalledTimes(6)
    expect(most).toBeLessThanOrEqual(4)
    expect(part.get('.failures').text()).toContain('eve: eve is gone')
    expect(part.get('.bar .count').text()).toBe('1 person selected')
    await inBar('Sign out everywhere…')?.trigger('click')
    await flushPromises()
    expect(dialog()).toContain('Sign 1 person out everywhere?')
    await press('Sign out')
    expect(signOut.mock.calls.map(([id]) => id)).toEqual(['usr_eve'])
  })

  it('shows the next page below, and asks again where the list did not come', async () => {
    const people = vi.spyOn(door, 'people').mockRejectedValueOnce(new RequestError(0, { code: 'offline' }))
    const part = await show(me('owner'))
    expect(part.get('[role=alert]').text()).toContain('The server does not answer.')
    people.mockImplementation(async ({ role, cursor }) => {
      if (role) return { items: [], total: 2, nextCursor: null }
      return cursor ? { items: [one('ben', 'member')], total: 2, nextCursor: null } : { items: [one('ana', 'owner')], total: 2, nextCursor: 'c' }
    })
    await part.get('[role=alert] button').trigger('click')
    await flushPromises()
    expect(rows(part)).toHaveLength(1)
    await part.get('.after button').trigger('click')
    await flushPromises()
    expect(rows(part)).toHaveLength(2)
    expect(part.find('.after').exists()).toBe(false)
  })

  it('filters at the server, and leads back to everybody', async () => {
    const part = await show(me('owner'))
    listed = []
    await part.findAll('.filters select')[0]?.setValue('viewer')
    await flushPromises()
    expect(route.query).toEqual({ role: 'viewer' })
    expect(door.people).toHaveBeenCalledWith({ sort: 'name', role: 'viewer', serviceAccount: false, limit: 50 })
    await part.get('.empty button').trigger('click')
    await flushPromises()
    expect(route.query).toEqual({})
  })
})

describe('invitations', () => {
  it('are open until they are used or have expired, and are taken back after a question', async () => {
    usePerson().me = me('admin')
    invitations = [
      invitation('a', { note: 'Eve' }),
      invitation('b', { role: 'admin', invitedBy: null }),
      invitation('c', { usedAt: AT, usedBy: 'usr_ben' }),
      invitation('d', { expiresAt: AT, invitedBy: 'usr_gone' }),
    ]
    const part = mount(InvitationList, { global: { plugins: [i18n] }, attachTo: document.body })
    await flushPromises()
    const [first, second, used, expired] = part.findAll('li').map((item) => item.text())
    expect(first).toMatch(/Eve.*Member · invited by ana, .* · valid until .*Take back/)
    expect(second).toMatch(/created on the server.*Only owners can take it back/)
    expect(used).toMatch(/used by ben/)
    expect(expired).toMatch(/invited by someone who is gone.*expired/)
    const withdraw = vi.spyOn(door, 'withdraw').mockImplementation(async () => void (invitations = invitations.slice(1)))
    await part.get('li button').trigger('click')
    await flushPromises()
    expect(dialog()).toContain('Take back the invitation for Eve?')
    await press('Take back')
    expect(withdraw).toHaveBeenCalledWith('a')
    expect(part.text()).not.toContain('Eve')
  })

  it('show their link once, below the address of the page where the server does not know its own', async () => {
    document.head.innerHTML = '<base href="/sepal/">'
    usePerson().me = me('admin')
    const invite = vi.spyOn(door, 'invite').mockResolvedValue({ invitation: invitation('a', { note: 'Eve' }), link: '/join#once' })
    const part = mount(InviteDialog, { props: { open: false }, global: { plugins: [i18n] }, attachTo: document.body })
    await part.setProps({ open: true })
    await nextTick()
    const box = document.querySelector<HTMLFormElement>('[role=dialog] form')
    expect([...(box?.querySelectorAll<HTMLInputElement>('[name=invite-role]') ?? [])].map(({ value }) => value)).toEqual(['viewer', 'approver', 'member'])
    const note = box?.querySelector<HTMLInputElement>('[name=invite-note]')
    if (note) note.value = ' Eve '
    note?.dispatchEvent(new Event('input'))
    box?.dispatchEvent(new Event('submit'))
    await flushPromises()
    expect(invite).toHaveBeenCalledWith({ role: 'member', note: 'Eve', days: 7 })
    expect(dialog()).toContain('Send this link to Eve.')
    expect(document.querySelector<HTMLInputElement>('[role=dialog] input')?.value).toBe(`${location.origin}/sepal/join#once`)
    expect(part.emitted('invited')).toHaveLength(1)
    document.head.innerHTML = ''
  })
})
