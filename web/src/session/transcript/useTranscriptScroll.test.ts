import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { defineComponent, h, ref } from 'vue'
import { useTranscriptScroll } from './useTranscriptScroll'

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
