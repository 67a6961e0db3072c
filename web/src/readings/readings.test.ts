import { enableAutoUnmount, flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { usePerson } from '@/stores/person'
import type { Me, Right } from '@/wire/restTypes'
import { door, type Reading } from './door'
import ReadingNotice from './ReadingNotice.vue'
import ReadingsSection from './ReadingsSection.vue'

vi.mock('vue-router', () => ({ RouterLink: { props: ['to'], template: '<a :href="to"><slot /></a>' } }))

let items: Reading[]

function reading(id: string, more: Partial<Reading> = {}): Reading {
  return {
    id,
    session: 'ses_1',
    owner: { id: 'usr_ana', name: 'ana' },
    reader: { id: 'usr_eve', name: 'eve' },
    mine: false,
    reason: 'case 7',
    createdAt: '2026-11-01T12:00:00Z',
    expiresAt: '2026-11-01T13:00:00Z',
    open: true,
    seenAt: null,
    ...more,
  }
}

function enter(...rights: Right[]) {
  usePerson().me = { user: { id: 'usr_ana', name: 'ana', role: 'member', installationAdmin: false, rights } } as unknown as Me
}

beforeEach(() => {
  setActivePinia(createPinia())
  items = []
  vi.spyOn(door, 'list').mockImplementation(async () => ({ items: [...items], nextCursor: null }))
})
enableAutoUnmount(afterEach)
afterEach(() => vi.restoreAllMocks())

async function show(part: typeof ReadingsSection | typeof ReadingNotice) {
  const shown = mount(part, { global: { plugins: [i18n] }, attachTo: document.body })
  await flushPromises()
  return shown
}

describe('readings', () => {
  it('tells a person once who may read a session of theirs, and why', async () => {
    items = [reading('rea_1'), reading('rea_2', { seenAt: '2026-11-01T12:10:00Z' }), reading('rea_3', { mine: true })]
    const see = vi.spyOn(door, 'see').mockResolvedValue(undefined)
    const notice = await show(ReadingNotice)
    expect(notice.findAll('p')).toHaveLength(1)
    expect(notice.text()).toContain('eve may read one of your sessions')
    expect(notice.text()).toContain('case 7')
    await notice.get('button').trigger('click')
    await flushPromises()
    expect(see).toHaveBeenCalledWith('rea_1')
    expect(notice.find('p').exists()).toBe(false)
  })

  it('offers reading only to those who have the right', async () => {
    enter()
    const plain = await show(ReadingsSection)
    expect(plain.text()).toContain('Nobody has read a session of yours')
    expect(plain.find('form').exists()).toBe(false)
    plain.unmount()
    enter('sessions.read_content')
    const begin = vi.spyOn(door, 'begin').mockResolvedValue(reading('rea_4', { mine: true }))
    const part = await show(ReadingsSection)
    await part.get('[name=session-id]').setValue(' ses_9 ')
    await part.get('[name=reason]').setValue('case 8')
    await part.get('form').trigger('submit')
    await flushPromises()
    expect(begin).toHaveBeenCalledWith('ses_9', 'case 8')
  })

  it('lists what one may read with a way to read and to end it', async () => {
    items = [reading('rea_1', { mine: true, owner: { id: 'usr_ben', name: 'ben' } }), reading('rea_2', { mine: true, open: false })]
    enter('sessions.read_content')
    const end = vi.spyOn(door, 'end').mockResolvedValue(undefined)
    const part = await show(ReadingsSection)
    const links = part.findAll('a')
    expect(links).toHaveLength(1)
    expect(links[0]?.attributes('href')).toContain('api/readings/rea_1/session?format=html&show=true')
    await part.get('[aria-label="End now: the session of ben"]').trigger('click')
    await flushPromises()
    expect(end).toHaveBeenCalledWith('rea_1')
  })
})
