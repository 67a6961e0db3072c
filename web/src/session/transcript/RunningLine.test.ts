import { mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { expect, it } from 'vitest'
import { i18n } from '@/locales'
import { idleTurn } from '@/session/conversation/streaming'
import RunningLine from './RunningLine.vue'

it.each([
  ['provider_rate_limited', 'The provider is limiting requests. Trying again in 4 s (2 of 3)'],
  ['', 'Trying again in 4 s (2 of 3)'],
])('says why it tries again after %j', (cause, words) => {
  setActivePinia(createPinia())
  const retry = { attempt: 2, maxAttempts: 3, until: Date.now() + 4_000, cause }
  const line = mount(RunningLine, { props: { running: { ...idleTurn(1, 1, '2026-11-23T10:00:00Z'), retry } }, global: { plugins: [i18n] } })
  expect(line.text()).toBe(words)
  line.unmount()
})
