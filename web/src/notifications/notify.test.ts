import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Router } from 'vue-router'
import { queueCall } from '@/approval/testing'
import { useWaiting } from '@/stores/waiting'
import { rest } from '@/wire/rest'
import type { SessionItem, WaitingItem } from '@/wire/restTypes'
import type { QueueCall } from '@/wire/types'
import NotificationSwitch from './NotificationSwitch.vue'
import { SeenCalls, startNotifying } from './notify'
import { lookAtPermission, noteRefused, switchOff } from './setting'

const waits = (sessionId: string, calls: QueueCall[], title = sessionId): WaitingItem => ({ sessionId, title, waitingSince: '2026-11-21T10:00:00Z', queue: { calls, seq: 1 } })
const row = (id: string, waiting: number): SessionItem => ({ id, title: id, createdAt: '', updatedAt: '', state: 'waiting', waiting, version: 1, isPinned: false, isArchived: false, tags: [] })

describe('what is new', () => {
  it('is told once for each batch, whatever becomes of its calls', () => {
    const seen = new SeenCalls()
    expect(seen.take(waits('s', [queueCall('a'), queueCall('b')]))).toMatchObject({ tool: 'write_file', calls: 2, tag: 's/a' })
    expect(seen.take(waits('s', [queueCall('a', { status: 'approved' }), queueCall('b')]))).toBeNull()
    expect(seen.take(waits('s', [queueCall('a'), queueCall('b')]))).toBeNull()
    expect(seen.take(waits('s', [queueCall('c')]))).toMatchObject({ calls: 1, tag: 's/c' })
    // Ids of calls are those of their session.
    expect(seen.take(waits('other', [queueCall('c')]))).not.toBeNull()
    expect(seen.take(waits('third', [queueCall('x', { mayDecide: false })]))).toBeNull()
  })
})

describe('a notification', () => {
  const shown: { title: string; options: NotificationOptions; onclick: (() => void) | null; close: () => void }[] = []
  let held: string[] = []
  let visibility: DocumentVisibilityState = 'hidden'
  let first: (() => void) | null = null
  let stop: () => void
  const push = vi.fn()

  beforeEach(() => {
    setActivePinia(createPinia())
    shown.length = 0
    held = []
    visibility = 'hidden'
    push.mockReset()
    vi.spyOn(document, 'visibilityState', 'get').mockImplementation(() => visibility)
    vi.stubGlobal('Notification', class {
      onclick = null
      constructor(readonly title: string, readonly options: NotificationOptions) {
        shown.push(this)
      }
      close() {}
    })
    const locks = {
      request: (_: string, options: { mode?: string }, grant: () => Promise<void>) => {
        if (options.mode !== 'shared') first = () => void grant()
        return Promise.resolve()
      },
      query: () => Promise.resolve({ held: held.map((name) => ({ name })) }),
    }
    vi.spyOn(navigator, 'locks', 'get').mockReturnValue(locks as unknown as LockManager)
    vi.spyOn(rest, 'approvalCount').mockResolvedValue({ calls: 1, sessions: 1, lastDecidedAt: null })
  })
  afterEach(() => {
    stop()
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
  })

  async function start(waiting: WaitingItem[]): Promise<void> {
    vi.spyOn(rest, 'approvals').mockResolvedValueOnce({ items: waiting, nextCursor: null })
    stop = startNotifying({ push } as unknown as Router)
    first?.()
    await settled()
  }

  async function begins(item: WaitingItem): Promise<void> {
    vi.mocked(rest.approvals).mockResolvedValueOnce({ items: [item], nextCursor: null })
    useWaiting().take(row(item.sessionId, item.queue.calls.length))
    await settled()
  }

  const settled = () => new Promise((resolve) => setTimeout(resolve, 0))

  it('says title and tool of what begins to wait, and no argument', async () => {
    await start([waits('old', [queueCall('o')])])
    expect(shown).toEqual([])
    await begins(waits('s', [queueCall('a', { name: 'execute\u202E_command', args: { command: 'secret' } }), queueCall('b')], 'Deploy'))
    expect(shown.map(({ title, options }) => [title, options.body, options.tag])).toEqual([['Deploy', 'Waits for you: execute⟦U+202E⟧_command and 1 more', 's/a']])
    expect(JSON.stringify(shown)).not.toContain('secret')
    expect(shown[0]?.options).not.toHaveProperty('actions')
  })

  it('leads to the session, or to all that waits where that is in several', async () => {
    await start([])
    await begins(waits('s', [queueCall('a')]))
    const waiting = useWaiting()
    waiting.sessions = 1
    shown[0]?.onclick?.()
    waiting.sessions = 2
    shown[0]?.onclick?.()
    expect(push.mock.calls).toEqual([['/s/s'], ['/approvals']])
  })

  it('is not shown for cards that come back with a connection, and is for those that came meanwhile', async () => {
    await start([waits('s', [queueCall('a')])])
    vi.mocked(rest.approvals).mockResolvedValueOnce({ items: [waits('s', [queueCall('a')]), waits('new', [queueCall('n')])], nextCursor: null })
    useWaiting().stale()
    await settled()
    expect(shown.map(({ options }) => options.tag)).toEqual(['new/n'])
  })

  it('is not shown while this tab or another one is in view, and not again later', async () => {
    await start([])
    visibility = 'visible'
    const read = begins(waits('s', [queueCall('a')]))
    // Looked away while the call is read: it began to wait in view.
    visibility = 'hidden'
    await read
    held = ['sepal/is-seen']
    await begins(waits('s', [queueCall('b')]))
    held = []
    await begins(waits('s', [queueCall('b')]))
    expect(shown).toEqual([])
    await begins(waits('s', [queueCall('c')]))
    expect(shown).toHaveLength(1)
  })

  it('is not shown where no tab can know whether another one is in view', async () => {
    await start([])
    vi.spyOn(navigator.locks, 'query').mockRejectedValue(new Error('no locks here'))
    useWaiting().take(row('s', 0))
    await begins(waits('s', [queueCall('a')]))
    expect(shown).toEqual([])
  })

  it('is shown by the first tab in line alone', async () => {
    first = null
    vi.spyOn(rest, 'approvals').mockResolvedValueOnce({ items: [], nextCursor: null })
    stop = startNotifying({ push } as unknown as Router)
    await settled()
    await begins(waits('s', [queueCall('a')]))
    expect(shown).toEqual([])
  })
})

describe('the switch', () => {
  let permission: NotificationPermission

  beforeEach(() => {
    permission = 'default'
    vi.stubGlobal('isSecureContext', true)
    vi.spyOn(navigator, 'locks', 'get').mockReturnValue({} as LockManager)
    const notification = Object.defineProperty(() => {}, 'permission', { get: () => permission })
    vi.stubGlobal('Notification', Object.assign(notification, { requestPermission: () => Promise.resolve(permission) }))
    switchOff()
  })
  afterEach(() => {
    localStorage.clear()
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
  })

  function show() {
    lookAtPermission()
    const part = mount(NotificationSwitch)
    return { part, box: part.get<HTMLInputElement>('input'), words: () => part.get('.secondary').text() }
  }

  it('is on when the browser was asked and said yes, and keeps that', async () => {
    const { part, box, words } = show()
    expect([box.element.checked, words()]).toEqual([false, 'Off. The browser asks for permission once.'])
    permission = 'granted'
    await box.setValue(true)
    await flushPromises()
    expect(box.element.checked).toBe(true)
    expect(words()).toMatch(/^On in this browser/)
    expect(localStorage.getItem('sepal.notifications')).toBe('on')
    await box.setValue(false)
    expect(localStorage.getItem('sepal.notifications')).toBeNull()
    part.unmount()
  })

  it('stays off when the browser said no, and says where that is changed', async () => {
    const { part, box, words } = show()
    permission = 'denied'
    await box.setValue(true)
    await flushPromises()
    expect([box.element.checked, box.element.disabled]).toEqual([false, true])
    expect(words()).toMatch(/^This browser blocks/)
    permission = 'granted'
    document.dispatchEvent(new Event('visibilitychange'))
    await flushPromises()
    expect(box.element.disabled).toBe(false)
    part.unmount()
  })

  it('says that plain http has none, and a browser without them neither', async () => {
    vi.stubGlobal('isSecureContext', false)
    const plain = show()
    expect([plain.box.element.disabled, plain.words()]).toEqual([true, expect.stringContaining('plain http')])
    plain.part.unmount()
    vi.stubGlobal('isSecureContext', true)
    vi.stubGlobal('Notification', undefined)
    const without = show()
    expect([without.box.element.disabled, without.words()]).toEqual([true, 'This browser does not support notifications.'])
    without.part.unmount()
  })

  it('says that the browser showed none', async () => {
    permission = 'granted'
    const { part, box, words } = show()
    noteRefused()
    await flushPromises()
    expect([box.element.disabled, words()]).toEqual([true, 'This browser does not show notifications.'])
    part.unmount()
  })
})
