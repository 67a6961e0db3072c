import { flushPromises, mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { h, nextTick, ref } from 'vue'
import { aTaskLater, inOwnTask, nextTask } from './scheduling'

const Part = inOwnTask({ render: () => h('p', 'part') })
const Page = { render: () => h('main', [h('h1', 'page'), h(Part)]) }

it('mounts a part in a task after the page, and at once when it was there before', async () => {
  const page = mount(Page)
  await Promise.resolve()
  expect(page.text()).toBe('page')
  await nextTask()
  await flushPromises()
  expect(page.text()).toBe('pagepart')
  expect(mount(Page).text()).toBe('pagepart')
})

it('tells a fact a task after it changed', async () => {
  const fact = ref(1)
  const page = mount({
    setup() {
      const told = aTaskLater(() => fact.value)
      return () => h('p', told.value)
    },
  })
  fact.value = 2
  await nextTick()
  expect(page.text()).toBe('1')
  await nextTask()
  await flushPromises()
  expect(page.text()).toBe('2')
})
