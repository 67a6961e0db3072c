/** The way from a card to the rule that is made from it, and back. */
import { mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { defineComponent, h, nextTick, ref } from 'vue'
import { queueCall } from '@/approval/testing'
import { GUARD_MS } from '@/browser/inputGuard'
import { provideRuleSession } from '@/rules/ofSession'
import { SESSION, spyOnDoor } from '@/rules/testing'
// Loaded beforehand, as the chunk that a person would wait for.
import '@/rules/composer/RuleComposer.vue'
import type { QueueCall } from '@/wire/types'
import ApprovalTray from './ApprovalTray.vue'

let page: VueWrapper
const tray = ref<InstanceType<typeof ApprovalTray>>()

beforeEach(() => {
  vi.useFakeTimers()
  setActivePinia(createPinia())
  spyOnDoor()
})
afterEach(() => {
  page.unmount()
  document.body.innerHTML = ''
  vi.useRealTimers()
  vi.restoreAllMocks()
})

function show(calls: QueueCall[], session: string | null = SESSION): void {
  const holder = defineComponent({
    setup() {
      provideRuleSession(() => session)
      return () => h(ApprovalTray, { ref: tray, calls, now: Date.now(), me: 'ana' })
    },
  })
  page = mount(holder, { attachTo: document.body, global: { stubs: { RouterLink: true } } })
}

async function settle(): Promise<void> {
  await vi.dynamicImportSettled()
  await vi.advanceTimersByTimeAsync(0)
  for (let at = 0; at < 5; at += 1) await nextTick()
}

async function press(key: string): Promise<void> {
  document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
  await settle()
}

it('opens by S, with the focus in it, and gives the focus back with Escape', async () => {
  show([queueCall('a')])
  await tray.value?.focusTray()
  await press('s')
  expect(page.find('.rule').exists()).toBe(false)
  vi.advanceTimersByTime(GUARD_MS)
  await press('s')
  expect(page.get('.rule').attributes('aria-label')).toBe('Approve and stop asking…: Write a.md')
  expect(page.get('.rule').element.contains(document.activeElement)).toBe(true)
  await press('Escape')
  expect(page.find('.rule').exists()).toBe(false)
  expect((document.activeElement as HTMLElement).dataset.callId).toBe('a')
})

it('stands after the other decisions, and decides nothing by its keys', async () => {
  show([queueCall('a')])
  vi.advanceTimersByTime(GUARD_MS)
  const labels = page.findAll('.actions .ap-button').map((button) => button.attributes('aria-label'))
  expect(labels.slice(0, 4)).toEqual(['Approve once', 'Reject', 'Edit', 'Approve and stop asking…'].map((words) => `${words}: Write a.md`))
  await page.get('[aria-keyshortcuts=S]').trigger('click')
  await settle()
  vi.advanceTimersByTime(GUARD_MS)
  await press('a')
  expect(page.getComponent(ApprovalTray).emitted('decide')).toBeUndefined()
  expect(page.find('.rule').exists()).toBe(true)
})

it.each([
  ['its session is not stored', queueCall('a'), null],
  ['nothing is known of its tool', queueCall('a', { digest: undefined }), SESSION],
  ['somebody else decides', queueCall('a', { mayDecide: false }), SESSION],
])('is not offered while %s', async (_, call, session) => {
  show([call], session)
  vi.advanceTimersByTime(GUARD_MS)
  expect(page.find('[aria-keyshortcuts=S]').exists()).toBe(false)
  await tray.value?.focusTray()
  await press('s')
  expect(page.find('.rule').exists()).toBe(false)
})
