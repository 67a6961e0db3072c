import { mount } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { defineComponent, h, nextTick, ref } from 'vue'
import { nextSlice, useSlices } from './timeSlicing'

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
  expect(undrawn()).toBe(138)
  await vi.runAllTimersAsync()
  expect(undrawn()).toBe(0)
  expect(slices.length).toBeGreaterThan(4)
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
