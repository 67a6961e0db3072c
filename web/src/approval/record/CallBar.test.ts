import { mount } from '@vue/test-utils'
import { expect, test } from 'vitest'
import { i18n } from '@/locales'
import CallBar from './CallBar.vue'

function bar(value: number, total: number | null, text = '') {
  return mount(CallBar, { props: { progress: { value, total, text }, about: 'echo' }, global: { plugins: [i18n] } }).get('progress')
}

test('a bar says how far its call is, also where a server counts past its end', () => {
  expect(bar(3, 10).attributes()).toMatchObject({ 'value': '30', 'max': '100', 'aria-label': 'Progress of echo' })
  expect(bar(30, 10).attributes('value')).toBe('100')
  expect(bar(-1, 10).attributes('value')).toBe('0')
  expect(bar(3, 10, 'reads \u202efile').attributes('aria-valuetext')).toMatch(/^30 %: reads [^\u202e]+file$/)
})

test('without a total nobody knows the end', () => {
  expect(bar(3, null).attributes('value')).toBeUndefined()
})
