import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { rest, type Me, type SessionItem } from '@/wire/rest'
import { usePerson } from './person'
import { useSessions } from './sessions'

const item = (id: string): SessionItem => ({
  id, title: `of ${id}`, createdAt: '2026-11-20T10:00:00Z', updatedAt: '2026-11-20T10:00:00Z', state: 'idle', waiting: 0,
})
const me = (id: string) => ({ user: { id, name: id, role: 'member' }, csrfToken: '', installation: { version: '1' } }) as unknown as Me

beforeEach(() => setActivePinia(createPinia()))
afterEach(() => vi.restoreAllMocks())

describe('the list of sessions', () => {
  it('shows nothing of the person before in the same tab', async () => {
    const person = usePerson()
    person.enter(me('ana'))
    const sessions = useSessions()
    vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('a')], nextCursor: 'more' })
    await sessions.refresh()
    person.lost()
    person.enter(me('ana'))
    expect(sessions.items).toHaveLength(1)
    person.lost()
    person.enter(me('bo'))
    expect(sessions.items).toHaveLength(0)
    expect(sessions.nextCursor).toBeNull()
  })

  it('tells a deletion at once when it has to, and takes it back when that fails', async () => {
    const sessions = useSessions()
    const page = vi.spyOn(rest, 'sessions').mockResolvedValue({ items: [item('a'), item('b')], nextCursor: null })
    await sessions.refresh()
    const deleted = vi.spyOn(rest, 'deleteSession').mockResolvedValueOnce(undefined).mockRejectedValueOnce(new Error('away'))
    sessions.remove(item('a'))
    await sessions.finishRemoval(false)
    expect(deleted).toHaveBeenCalledWith('a', false)
    expect(sessions.items.map(({ id }) => id)).toEqual(['b'])
    sessions.remove(item('b'))
    page.mockResolvedValue({ items: [item('b')], nextCursor: null })
    await sessions.finishRemoval(false)
    expect(sessions.shown.map(({ id }) => id)).toEqual(['b'])
  })
})
