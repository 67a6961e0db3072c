import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { rest, type Me, type SessionItem } from '@/wire/rest'
import { usePerson } from './person'
import { useSessions } from './sessions'

const item = (id: string): SessionItem => ({ id, title: id, createdAt: '2026-11-23T10:00:00Z', updatedAt: `2026-11-23T10:00:0${id.length}Z`, state: 'idle', waiting: 0, version: 1 })

function me(id: string): Me {
  return {
    user: { id, name: id, role: 'member' },
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
  vi.spyOn(rest, 'deleteSession').mockImplementation(async (id) => {
    asked.push(`delete ${id}`)
    await Promise.resolve()
    asked.push('deleted')
    return undefined
  })
  vi.spyOn(rest, 'signOut').mockImplementation(async () => void asked.push('sign out'))
  vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('a'), item('bb')], nextCursor: 'next' })
  const [person, sessions] = [usePerson(), useSessions()]
  person.enter(me('ana'))
  await sessions.refresh()
  sessions.remove(item('a'))

  await person.signOut()
  expect(asked).toEqual(['delete a', 'deleted', 'sign out'])
  expect([sessions.items, sessions.nextCursor, sessions.leaving]).toEqual([[], null, null])
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
