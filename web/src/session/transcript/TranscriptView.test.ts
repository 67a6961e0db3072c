import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineComponent, effectScope, h, nextTick, ref, type EffectScope } from 'vue'
import { i18n } from '@/locales'
import { loadMarkdown } from '@/markdown/blocks'
import { EMPTY } from '@/session/conversation/conversation'
import { fold } from '@/session/conversation/fold'
import { useSession } from '@/session/store/session'
import { rest } from '@/wire/rest'
import { systemReady } from '@/wire/testing'
import { branchesOf, type Relative } from './branches'
import { useFind } from './FindBar.vue'
import { target } from './jump'
import { nextSlice, useSlices } from './timeSlicing'
import TranscriptView from './TranscriptView.vue'
import { useTranscriptScroll } from './useTranscriptScroll'

let page: VueWrapper

beforeAll(loadMarkdown)
beforeEach(() => setActivePinia(createPinia()))
afterEach(() => page.unmount())

function show() {
  page = mount(TranscriptView, { slots: { empty: '<p class="empty">empty</p>' }, attachTo: document.body, global: { plugins: [i18n] } })
  return useSession()
}

const isEmpty = () => page.find('.empty').exists()

it('is not called empty before the server has said so', async () => {
  const session = useSession()
  session.id = 'ses_1'
  show()
  expect(isEmpty()).toBe(false)
  session.ready = systemReady()
  await nextTick()
  expect(isEmpty()).toBe(true)
})

it('begins a new session with what can be done', () => {
  show()
  expect(isEmpty()).toBe(true)
})

it('shows the newest answer, leads back to the one before, and asks again only for the newest', async () => {
  const session = show()
  const at = '2026-11-23T10:00:00Z'
  const events: [string, unknown[]][] = [
    ['user:message', ['hi', {}]],
    ['agent:thinking', [{ turn: 1, iteration: 1 }]],
    ['agent:response', ['first', { turn: 1 }]],
    ['agent:thinking', [{ turn: 2, iteration: 1, retry: true }]],
  ]
  const stored = events.map(([event, args], index) => ({ seq: index + 1, at, event, args }))
  session.conversation = fold(EMPTY, stored)
  await nextTick()
  expect(page.text()).not.toContain('first')
  expect(page.text()).toContain('2 of 2')
  session.conversation = fold(session.conversation, [{ seq: 5, at, event: 'agent:response', args: ['second', { turn: 2 }] }])
  await nextTick()
  expect(page.findAll('.md').map((text) => text.text())).toEqual(['hi', 'second'])
  const again = () => page.findAll('.actions button').filter((button) => button.text() === 'Try again').length
  expect(again()).toBe(1)
  await page.get('[aria-label="Previous answer"]').trigger('click')
  expect(page.findAll('.md').map((text) => text.text())).toEqual(['hi', 'first'])
  expect(page.text()).toContain('1 of 2')
  expect(again()).toBe(0)
  // Asked for again elsewhere, the one that is made is shown.
  session.conversation = fold(session.conversation, [{ seq: 6, at, event: 'agent:thinking', args: [{ turn: 3, iteration: 1, retry: true }] }])
  await nextTick()
  expect(page.text()).toContain('3 of 3')
  expect(page.findAll('.md').map((text) => text.text())).toEqual(['hi'])
  vi.restoreAllMocks()
})

it('gives back a message that is taken back to be edited, though it is gone by then', async () => {
  const session = show()
  session.unsent = [{ clientMessageId: 'm1', text: 'not like this' }]
  const unsend = vi.spyOn(session, 'unsend').mockImplementation(async () => {
    session.unsent = []
    await nextTick()
    return true
  })
  await nextTick()
  await page.get('[aria-label^="Edit"]').trigger('click')
  await vi.waitFor(() => expect(page.emitted('edit')).toEqual([['not like this', undefined]]))
  expect(unsend).toHaveBeenCalledWith('m1')
  expect(page.find('.unsent').exists()).toBe(false)
  vi.restoreAllMocks()
})

describe('scrolling', () => {
  /** A scroller of 1,000 pixels, 200 of which are in view; nothing lays it out. */
  function scrolled() {
    let scroll: ReturnType<typeof useTranscriptScroll> | undefined
    const scroller = ref<HTMLElement | null>(null)
    const edges = { hasEarlier: () => false, isAtNewest: () => true, earlier: () => Promise.resolve(), later: () => Promise.resolve() }
    const page = mount(defineComponent({
      setup() {
        scroll = useTranscriptScroll(scroller, ref(null), edges)
        return () => h('div')
      },
    }))
    const box = page.element as HTMLElement
    Object.defineProperties(box, { scrollHeight: { value: 1_000, configurable: true }, clientHeight: { value: 200 } })
    box.scrollTop = 800
    scroller.value = box
    scroll?.onScroll()
    return { box, scroll: scroll as ReturnType<typeof useTranscriptScroll> }
  }

  it('follows no end that somebody has left, though the event of it has not come yet', () => {
    const { box, scroll } = scrolled()
    expect(scroll.follows()).toBe(true)
    box.scrollTop = 0
    expect(scroll.follows()).toBe(false)
    expect(scroll.isFollowing.value).toBe(false)
  })

  it('goes on following where what is drawn above moves the end away', () => {
    const { box, scroll } = scrolled()
    Object.defineProperty(box, 'scrollHeight', { value: 1_400, configurable: true })
    expect(scroll.follows()).toBe(true)
    expect(scroll.isFollowing.value).toBe(true)
  })
})

describe('branches', () => {
  const relative = (id: string, age: number, sessionId?: string, seq = 0): Relative => ({
    id,
    createdAt: `2026-01-01T00:00:0${age}Z`,
    forkedFrom: sessionId === undefined ? null : { sessionId, seq },
  })

  it('finds nothing in a session that was never forked', () => {
    expect(branchesOf('a', [relative('a', 1)])).toEqual([])
    expect(branchesOf('a', [])).toEqual([])
  })

  it('names every way at the place where they part, the oldest first', () => {
    const family = [relative('a', 1), relative('b', 2, 'a', 4), relative('c', 3, 'a', 4)]
    const branch = [{ seq: 4, ids: ['a', 'b', 'c'] }]
    for (const id of ['a', 'b', 'c']) expect(branchesOf(id, family)).toEqual(branch)
  })

  it('tells a fork of a fork apart from its elders', () => {
    // `c` has the past of `b` up to 9, and so that of `a` up to 4; `d` goes back behind the fork of `b`.
    const family = [relative('a', 1), relative('b', 2, 'a', 4), relative('c', 3, 'b', 9), relative('d', 4, 'b', 2)]
    expect(branchesOf('c', family)).toEqual([
      { seq: 2, ids: ['c', 'd'] },
      { seq: 4, ids: ['a', 'c'] },
      { seq: 9, ids: ['b', 'c'] },
    ])
    expect(branchesOf('d', family)).toEqual([{ seq: 2, ids: ['a', 'b', 'c', 'd'] }])
  })

  it('knows siblings whose parent is deleted', () => {
    const family = [relative('b', 2, 'a', 4), relative('c', 3, 'a', 7)]
    expect(branchesOf('b', family)).toEqual([{ seq: 4, ids: ['b', 'c'] }])
  })
})

describe('slices of time', () => {
  const total = ref(0)
  /** The number of the first row, which older ones make smaller. */
  const first = ref(0)

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'requestAnimationFrame', 'cancelAnimationFrame', 'performance'] })
    total.value = 0
    first.value = 0
  })
  afterEach(() => vi.useRealTimers())

  function show() {
    const slices: number[] = []
    const page = mount(
      defineComponent(() => {
        const undrawn = useSlices(
          () => Array.from({ length: total.value }, (_, at) => ({ key: String(first.value + at) })),
          async (change) => {
            change()
            await nextTick()
          },
        )
        return () => {
          slices.push(undrawn.value)
          return h('p', undrawn.value)
        }
      }),
    )
    return { page, slices, undrawn: () => Number(page.text()) }
  }

  it('draws the end of a long list first and the rest in later frames', async () => {
    const { page, slices, undrawn } = show()
    total.value = 150
    await nextTick()
    expect(undrawn()).toBe(150)
    await vi.runAllTimersAsync()
    expect(undrawn()).toBe(0)
    expect(slices.slice(0, 3)).toEqual([0, 150, 149])
    page.unmount()
  })

  it('draws what is added at the end at once', async () => {
    const { page, undrawn } = show()
    total.value = 150
    await nextTick()
    await vi.runAllTimersAsync()
    total.value = 152
    await nextTick()
    expect(undrawn()).toBe(0)
    page.unmount()
  })

  it('keeps what was drawn when older rows come above it', async () => {
    const { page, undrawn } = show()
    first.value = 100
    total.value = 80
    await vi.runAllTimersAsync()
    first.value = 30
    total.value = 150
    await nextTick()
    expect(undrawn()).toBe(70)
    await vi.runAllTimersAsync()
    expect(undrawn()).toBe(0)
    page.unmount()
  })

  it('forgets the rest of a list that was left', async () => {
    const { page, undrawn } = show()
    total.value = 150
    await nextTick()
    total.value = 0
    await nextTick()
    expect(undrawn()).toBe(0)
    total.value = 3
    await vi.runAllTimersAsync()
    expect(undrawn()).toBe(0)
    page.unmount()
  })

  it('draws everything for paper', async () => {
    const { page, undrawn } = show()
    total.value = 150
    await nextTick()
    dispatchEvent(new Event('beforeprint'))
    await nextTick()
    expect(undrawn()).toBe(0)
    page.unmount()
  })

  it('makes slices smaller where they take long, and never more than twice as large', () => {
    expect(nextSlice(6, 1)).toBe(12)
    expect(nextSlice(6, 8)).toBe(6)
    expect(nextSlice(6, 80)).toBe(1)
  })
})

describe('finding', () => {
  function begin(scope: EffectScope): ReturnType<typeof useFind> {
    const find = scope.run(() => useFind(() => 'ses_1'))
    if (!find) throw new Error('the scope has ended')
    return find
  }

  beforeEach(() => vi.useFakeTimers())
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  it('leads to the newest place first, and goes through all of them in a circle', async () => {
    const asked = vi.spyOn(rest, 'searchIn').mockResolvedValue({ items: [3, 8, 21] })
    const scope = effectScope()
    const find = begin(scope)
    find.query.value = 'word'
    await nextTick()
    await vi.runAllTimersAsync()
    expect(asked.mock.calls).toEqual([['ses_1', 'word']])
    const places = [target.value?.seq]
    for (const by of [1, 1, -1, -1] as const) {
      find.step(by)
      places.push(target.value?.seq)
    }
    expect(places).toEqual([21, 3, 8, 3, 21])
    expect(find.at.value).toBe(2)
    scope.stop()
  })

  it('says that nothing was found, or that nobody answered', async () => {
    vi.spyOn(rest, 'searchIn').mockResolvedValueOnce({ items: [] }).mockRejectedValueOnce(new Error('away'))
    const scope = effectScope()
    const find = begin(scope)
    for (const [query, state] of [['one', 'found'], ['two', 'failed']] as const) {
      find.query.value = query
      await nextTick()
      await vi.runAllTimersAsync()
      expect([find.state.value, find.found.value]).toEqual([state, []])
    }
    find.query.value = ''
    await nextTick()
    expect(find.state.value).toBe('empty')
    scope.stop()
  })
})
