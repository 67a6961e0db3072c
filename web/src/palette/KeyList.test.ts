import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { i18n } from '@/locales'
import { sendKey } from '@/stores/appearance'
import KeyList from './KeyList.vue'

it.each([
  ['enter', 'Enter', 'Shift Enter'],
  ['ctrl-enter', 'Ctrl Enter', 'Enter'],
] as const)('lists the keys that send and that break a line where a person sends with %s', (chosen, sends, breaks) => {
  sendKey.value = chosen
  const list = mount(KeyList, { props: { level: 2 }, global: { plugins: [i18n] } })
  const keysOf = (name: string) => list.findAll('.key').find((key) => key.get('dd').text() === name)?.findAll('kbd').map((key) => key.text()).join(' ')
  expect([keysOf('Send the message'), keysOf('New line')]).toEqual([sends, breaks])
  list.unmount()
  sendKey.value = 'enter'
})
