import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { nextTick, reactive } from 'vue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import { politeText } from '@/ui/announcer'
import { RequestError } from '@/wire/request'
import type { Me } from '@/wire/restTypes'
import { door, type Tenant } from './door'
import { filtersOf, fitting, queryOf } from './filters'
import NewTenantDialog from './NewTenantDialog.vue'
import TenantsSection from './TenantsSection.vue'

const AT = '2026-11-01T12:00:00Z'
const route = reactive<{ query: Record<string, string> }>({ query: {} })

vi.mock('vue-router', () => ({
  RouterLink: { template: '<a><slot /></a>' },
  useRoute: () => route,
  useRouter: () => ({ replace: async ({ query }: { query: Record<string, string> }) => (route.query = query) }),
}))

let listed: Tenant[]

function one(name: string, more: Partial<Tenant> = {}): Tenant {
  return { id: `ten_${name}`, name, state: 'active', people: 2, sessions: 3, createdAt: AT, activeAt: null, ...more }
}

function me(more: { installationAdmin?: boolean; authMode?: string } = {}): Me {
  const { installationAdmin = true, authMode = 'password' } = more
  return { user: { id: 'usr_ana', name: 'ana', role: 'owner', installationAdmin }, tenant: { id: 'ten_default', name: 'default' }, authMode } as unknown as Me
}

const no = (detail: string, status = 403) => new RequestError(status, { code: 'not_allowed', detail })

beforeEach(() => {
  setActivePinia(createPinia())
  route.query = {}
  listed = [one('acme'), one('default')]
  vi.spyOn(door, 'tenants').mockImplementation(async () => [...listed])
})
enableAutoUnmount(afterEach)
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

async function show(as: Me = me()) {
  usePerson().me = as
  const part = mount(TenantsSection, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return part
}

type Part = Awaited<ReturnType<typeof show>>

const names = (part: Part) => part.findAll('tbody .name').map((name) => name.text())

function rowOf(part: Part, name: string) {
  const found = part.findAll('tbody tr').find((row) => row.get('.name').text() === name)
  if (!found) throw new Error(`${name} is not listed`)
  return found
}

/** Chooses from the menu of a tenant. */
async function choose(part: Part, name: string, entry: string) {
  await rowOf(part, name).get('button').trigger('click')
  await vi.waitFor(() => expect(document.querySelector('[role=menuitem]')).not.toBeNull())
  const items = [...document.querySelectorAll<HTMLElement>('[role=menuitem]')]
  items.find((it) => it.textContent?.trim() === entry)?.click()
  await flushPromises()
}

/** Presses a button of the dialog that is open. */
async function press(name: string) {
  const button = [...document.querySelectorAll<HTMLElement>('[role=dialog] button')].find((it) => it.textContent?.trim() === name)
  if (!button) throw new Error(`no dialog has the button ${name}`)
  button.click()
  await flushPromises()
}

async function fill(selector: string, value: string) {
  const field = document.querySelector<HTMLInputElement>(`[role=dialog] ${selector}`)
  if (!field) throw new Error(`no dialog has ${selector}`)
  field.value = value
  field.dispatchEvent(new Event('input'))
  await nextTick()
}

const dialog = () => document.querySelector('[role=dialog]')?.textContent ?? ''

it('keeps the filters in the address, and lists what fits them in their order', () => {
  expect(queryOf(filtersOf({}))).toEqual({})
  const query = { search: 'ac', state: 'suspended', sort: 'people' }
  expect(queryOf(filtersOf(query))).toEqual(query)
  expect(filtersOf({ state: 'x', sort: 'shoes', search: ['a'] })).toEqual(filtersOf({}))
  const tenants = [
    one('acme', { people: 1, sessions: 9, createdAt: '2026-01-01T00:00:00Z', activeAt: '2026-02-01T00:00:00Z' }),
    one('bolt', { people: 5, sessions: 9, createdAt: '2026-03-01T00:00:00Z', state: 'suspended' }),
    one('macs', { people: 5, sessions: 1, createdAt: '2026-02-01T00:00:00Z', activeAt: '2026-03-01T00:00:00Z' }),
  ]
  const by = (query: Record<string, string>) => fitting(tenants, filtersOf(query)).map(({ name }) => name)
  expect(by({})).toEqual(['acme', 'bolt', 'macs'])
  expect(by({ sort: 'people' })).toEqual(['bolt', 'macs', 'acme'])
  expect(by({ sort: 'sessions' })).toEqual(['acme', 'bolt', 'macs'])
  expect(by({ sort: 'active' })).toEqual(['macs', 'acme', 'bolt'])
  expect(by({ sort: 'created' })).toEqual(['bolt', 'macs', 'acme'])
  expect(by({ search: ' AC ' })).toEqual(['acme', 'macs'])
  expect(by({ state: 'suspended' })).toEqual(['bolt'])
})

describe('the list', () => {
  it('says how much each tenant has, and offers nothing about one’s own', async () => {
    listed = [one('acme', { people: 0, sessions: 1200 }), one('default', { activeAt: '2026-01-01T00:00:00Z' })]
    const part = await show()
    expect(rowOf(part, 'acme').text()).toMatch(/Nobody has joined yet.*Active.*0.*1,200.*Never/)
    expect(rowOf(part, 'default').text()).toMatch(/yours.*2.*3.*2026/)
    expect(rowOf(part, 'default').find('button').exists()).toBe(false)
    expect(part.text()).not.toContain('Yours is the only tenant.')
    listed = [one('default')]
    expect((await show()).text()).toContain('Yours is the only tenant.')
  })

  it('tells those who do not administer the installation, and asks nothing', async () => {
    const part = await show(me({ installationAdmin: false }))
    expect(part.text()).toContain('Only administrators of the installation see its tenants.')
    expect(door.tenants).not.toHaveBeenCalled()
    expect(part.find('#new-tenant').exists()).toBe(false)
  })

  it('says how tenants can be added where nobody signs in', async () => {
    const part = await show(me({ authMode: 'none' }))
    expect(part.text()).toContain('Nobody signs in here')
    expect(part.find('#new-tenant').exists()).toBe(false)
  })

  it('shows fifty at a time, and leads back to all where none fits', async () => {
    listed = Array.from({ length: 120 }, (_, n) => one(`t-${String(n).padStart(3, '0')}`))
    const part = await show()
    expect(names(part)).toHaveLength(50)
    await part.get('.after button').trigger('click')
    expect(names(part)).toHaveLength(100)
    await part.get('.after button').trigger('click')
    await flushPromises()
    expect(names(part)).toHaveLength(120)
    expect(part.find('.after').exists()).toBe(false)
    expect(document.activeElement?.id).toBe('tenant-ten_t-100')
    await part.get('.filters select').setValue('suspended')
    await flushPromises()
    expect(route.query).toEqual({ state: 'suspended' })
    await part.get('.empty button').trigger('click')
    await flushPromises()
    expect(names(part)).toHaveLength(50)
  })

  it('asks again where it did not come', async () => {
    vi.spyOn(door, 'tenants').mockRejectedValueOnce(new RequestError(0, { code: 'offline' }))
    const part = await show()
    expect(part.get('[role=alert]').text()).toContain('The server does not answer.')
    await part.get('[role=alert] button').trigger('click')
    await flushPromises()
    expect(part.find('[role=alert]').exists()).toBe(false)
    expect(names(part)).toEqual(['acme', 'default'])
    expect(document.activeElement?.id).toBe('tenants-search')
  })
})

describe('a tenant', () => {
  it('is suspended and resumed after a question, which stays with the reason where that is refused', async () => {
    const suspend = vi.spyOn(door, 'suspend').mockRejectedValueOnce(no('not today'))
    const part = await show()
    await choose(part, 'acme', 'Suspend…')
    expect(dialog()).toContain('Suspend acme?')
    expect(dialog()).toContain('Everything is kept')
    await press('Suspend')
    expect(dialog()).toContain('That did not work: not today')
    suspend.mockImplementation(async (_, suspended) => one('acme', { state: suspended ? 'suspended' : 'active' }))
    await press('Suspend')
    expect(suspend).toHaveBeenLastCalledWith('ten_acme', true)
    expect(rowOf(part, 'acme').get('.state').text()).toContain('Suspended')
    expect(politeText.value).toContain('acme is suspended')
    await choose(part, 'acme', 'Resume…')
    await press('Resume')
    expect(suspend).toHaveBeenLastCalledWith('ten_acme', false)
    expect(rowOf(part, 'acme').get('.state').text()).toContain('Active')
  })

  it('is deleted once its name is typed, and stays listed until the server is done', async () => {
    const remove = vi.spyOn(door, 'remove').mockResolvedValue(undefined as never)
    const part = await show()
    await choose(part, 'acme', 'Delete…')
    expect(dialog()).toContain('Everything of acme is deleted for good: 2 people, 3 sessions with their files, all servers')
    await press('Delete')
    await fill('[name=confirm]', 'acm')
    await press('Delete')
    expect(remove).not.toHaveBeenCalled()
    await fill('[name=confirm]', 'acme')
    vi.useFakeTimers()
    document.querySelector<HTMLElement>('[role=dialog] form')?.dispatchEvent(new Event('submit'))
    await vi.advanceTimersByTimeAsync(0)
    expect(remove).toHaveBeenCalledWith(listed[0])
    expect(rowOf(part, 'acme').find('progress').exists()).toBe(true)
    expect(rowOf(part, 'acme').find('button').exists()).toBe(false)

    listed = [one('acme', { state: 'deleting' }), one('default')]
    await vi.advanceTimersByTimeAsync(2_000)
    expect(names(part)).toEqual(['acme', 'default'])
    listed = [one('default')]
    document.getElementById('tenant-ten_acme')?.focus()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(names(part)).toEqual(['default'])
    expect(document.activeElement?.id).toBe('tenants-search')
    expect(politeText.value).toContain('acme is deleted')
    const asked = vi.mocked(door.tenants).mock.calls.length
    await vi.advanceTimersByTimeAsync(60_000)
    expect(door.tenants).toHaveBeenCalledTimes(asked)
  })

  it('is made with a link for its first owner, which is shown once', async () => {
    document.head.innerHTML = '<base href="/sepal/">'
    const add = vi.spyOn(door, 'add').mockRejectedValueOnce(no('taken', 409))
    const part = mount(NewTenantDialog, { props: { open: false }, global: { plugins: [i18n] }, attachTo: document.body })
    await part.setProps({ open: true })
    await nextTick()
    const submit = async () => {
      document.querySelector('[role=dialog] form')?.dispatchEvent(new Event('submit'))
      await flushPromises()
    }
    await fill('[name=tenant-name]', ' acme ')
    await submit()
    expect(dialog()).toContain('There is already a tenant called acme.')
    add.mockResolvedValueOnce({ tenant: one('acme', { people: 0 }), ownerLink: '/join#once' })
    await submit()
    expect(add).toHaveBeenLastCalledWith('acme')
    expect(dialog()).toContain('acme created')
    expect(dialog()).toContain('sepal admin user invite --tenant acme --role owner')
    expect(document.querySelector<HTMLInputElement>('[role=dialog] input')?.value).toBe(`${location.origin}/sepal/join#once`)
    expect(part.emitted('made')).toHaveLength(1)
    await part.setProps({ open: false })
    await part.setProps({ open: true })
    expect(document.body.innerHTML).not.toContain('join#once')
    document.head.innerHTML = ''
  })
})
