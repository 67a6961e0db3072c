import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { rest } from '@/wire/rest'
import type { Me, SessionItem } from '@/wire/restTypes'
import { usePerson } from './person'
import { useSessions } from './sessions'

const item = (id: string): SessionItem => ({ id, title: id, createdAt: '2026-11-23T10:00:00Z', updatedAt: `2026-11-23T10:00:0${id.length}Z`, state: 'idle', waiting: 0, version: 1, isPinned: false, isArchived: false, tags: [] })

function me(id: string): Me {
  return {
    user: { id, name: id, role: 'member', installationAdmin: false, rights: [] },
    tenant: { id: 't', name: 't' },
    csrfToken: '',
    installation: { name: 'Sepal', version: '0.1.0' },
    authMode: 'password',
    encrypted: true,
  }
}

beforeEach(() => setActivePinia(createPinia()))
afterEach(() => vi.restoreAllMocks())

it('deletes before it signs out, and leaves nothing of the list to whoever comes next', async () => {
  const asked: string[] = []
  vi.spyOn(rest, 'changeSessions').mockImplementation(async ([id], action) => {
    asked.push(`${action} ${id}`)
    await Promise.resolve()
    asked.push('deleted')
    return { done: [], notFound: [], deleteAt: null }
  })
  vi.spyOn(rest, 'signOut').mockImplementation(async () => void asked.push('sign out'))
  vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('a'), item('bb')], nextCursor: 'next' })
  const [person, sessions] = [usePerson(), useSessions()]
  person.enter(me('ana'))
  await sessions.refresh()
  void sessions.remove([item('a')])

  await person.signOut()
  expect(asked).toEqual(['delete a', 'deleted', 'sign out'])
  expect([sessions.items, sessions.nextCursor, sessions.leaving]).toEqual([[], null, null])
})

it('brings back what the server has not deleted yet, and nothing else', async () => {
  const asked = vi.spyOn(rest, 'changeSessions').mockResolvedValue({ done: ['a'], notFound: [], deleteAt: null })
  const listed = vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('bb'), item('a')], nextCursor: null })
  const sessions = useSessions()
  await sessions.refresh()
  expect(await sessions.remove([item('a')])).toBe(true)
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb'])
  // A list that was read before knows of it still.
  await sessions.refresh()
  sessions.take({ ...item('a'), version: 5 })
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb'])
  await sessions.undoRemoval()
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb', 'a'])

  asked.mockResolvedValue({ done: [], notFound: ['a'], deleteAt: null })
  await sessions.remove([item('a')])
  listed.mockResolvedValue({ items: [item('bb')], nextCursor: null })
  await sessions.undoRemoval()
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb'])

  asked.mockRejectedValue(new Error('away'))
  expect(await sessions.remove([item('bb')])).toBe(false)
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb'])
})

it('shows what is pinned first, and of the rest what is asked for', async () => {
  const listed = vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('bb'), item('a')], nextCursor: null })
  const sessions = useSessions()
  await sessions.refresh()
  sessions.take({ ...item('a'), isPinned: true, tags: ['x'], version: 2 })
  expect(sessions.items.map(({ id }) => id)).toEqual(['a', 'bb'])
  expect(sessions.tags).toEqual(['x'])
  sessions.take({ ...item('bb'), isArchived: true, version: 2 })
  expect(sessions.items.map(({ id }) => id)).toEqual(['a'])

  listed.mockResolvedValue({ items: [{ ...item('bb'), isArchived: true, version: 2 }], nextCursor: null })
  await sessions.choose({ isArchived: true })
  expect(listed).toHaveBeenLastCalledWith(null, { isArchived: true, tag: null })
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb'])
  sessions.take({ ...item('ccc'), version: 2 })
  sessions.touch('dddd', { state: 'running', updatedAt: '2026-11-23T11:00:00Z' })
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb'])
})

it('shows nothing of another person, though an answer to them comes late', async () => {
  let answer: (page: { items: SessionItem[]; nextCursor: string | null }) => void = () => {}
  vi.spyOn(rest, 'sessions').mockImplementation((cursor) =>
    cursor === null ? Promise.resolve({ items: [item('a')], nextCursor: 'next' }) : new Promise((resolve) => (answer = resolve)),
  )
  const [person, sessions] = [usePerson(), useSessions()]
  person.enter(me('ana'))
  await sessions.refresh()
  const more = sessions.loadMore()
  // The cookie ended, and the same person comes back: the list stays.
  person.lost()
  person.enter(me('ana'))
  expect(sessions.items).toHaveLength(1)

  person.lost()
  person.enter(me('bo'))
  expect(sessions.items).toEqual([])
  answer({ items: [item('bb')], nextCursor: null })
  await more
  expect(sessions.items).toEqual([])
})

it('takes what the server tells of any session, and of two items the newer', async () => {
  vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('bb'), item('a')], nextCursor: null })
  const sessions = useSessions()
  await sessions.refresh()
  sessions.take({ ...item('a'), state: 'waiting', waiting: 2, version: 3 })
  sessions.take({ ...item('a'), state: 'running', waiting: 0, version: 2 })
  expect(sessions.items.map(({ id, waiting }) => [id, waiting])).toEqual([['bb', 0], ['a', 2]])
  // A list that was read before is older than what was told meanwhile.
  await sessions.refresh()
  expect(sessions.items[1]?.waiting).toBe(2)

  sessions.take({ ...item('ccc'), waiting: 1 })
  expect(sessions.items[0]?.id).toBe('ccc')
  sessions.drop('ccc')
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb', 'a'])
})

it('leaves the open session to its own socket, which knows sooner', async () => {
  vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('a')], nextCursor: null })
  const sessions = useSessions()
  await sessions.refresh()
  sessions.follow('a')
  sessions.patch('a', { state: 'waiting', waiting: 1 })
  sessions.take({ ...item('a'), title: 'named', state: 'running', waiting: 0, version: 2 })
  expect(sessions.items[0]).toMatchObject({ title: 'named', state: 'waiting', waiting: 1 })
  sessions.follow(null)
  sessions.take({ ...item('a'), waiting: 0, version: 3 })
  expect(sessions.items[0]?.waiting).toBe(0)
})

it('shows what waits first, however long ago it began', async () => {
  const old = { ...item('a'), updatedAt: '2025-01-01T10:00:00Z', waiting: 1 }
  vi.spyOn(rest, 'sessions').mockImplementation(async (_cursor, _filter, state) =>
    state === 'waiting' ? { items: [old], nextCursor: null } : { items: [item('bb')], nextCursor: 'more' },
  )
  const sessions = useSessions()
  await sessions.refresh()
  expect(sessions.items.map(({ id }) => id)).toEqual(['bb', 'a'])
})
