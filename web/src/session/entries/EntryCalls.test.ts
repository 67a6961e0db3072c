import { mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { expect, it } from 'vitest'
import { i18n } from '@/locales'
import type { CallEntry } from '@/session/conversation/conversation'
import type { CallsRow } from '@/session/conversation/rows'
import type { CallStatus } from '@/wire/types'
import EntryCalls from './EntryCalls.vue'

function row(...statuses: CallStatus[]): CallsRow {
  const calls = statuses.map((status, n): CallEntry => {
    const callId = `call_${n}`
    return { kind: 'call', key: callId, seq: n, at: '', call: { callId, name: 'write_file', server: 's', args: { path: `${n}.txt` }, status, edited: false } }
  })
  return { kind: 'calls', key: 'c', calls, isFoldable: statuses.length > 1 && statuses.every((status) => status !== 'executing') }
}

function show(shown: CallsRow, isMarked = false) {
  setActivePinia(createPinia())
  return mount(EntryCalls, { props: { row: shown, progress: {}, isMarked }, global: { plugins: [i18n] }, attachTo: document.body })
}

const rows = (page: ReturnType<typeof show>) => page.findAll('.row').length

it('says in one line what became of several calls, and opens', async () => {
  const page = show(row('completed', 'completed', 'rejected'))
  const line = page.get('button')
  expect(line.text()).toBe('Ran 3 calls: 2 done, 1 rejected')
  expect([line.attributes('aria-expanded'), rows(page)]).toEqual(['false', 0])
  await line.trigger('click')
  expect([line.attributes('aria-expanded'), rows(page)]).toEqual(['true', 3])
  page.unmount()
})

it('says of calls of which none ran only how many there are', () => {
  const page = show(row('rejected', 'rejected'))
  expect(page.get('button').text()).toBe('2 calls: 2 rejected')
  page.unmount()
})

it('is open while a call runs, and stays so where one is being read', async () => {
  const page = show(row('completed', 'executing'))
  expect(rows(page)).toBe(2)
  await page.setProps({ row: row('completed', 'completed') })
  expect(rows(page)).toBe(0)
  page.unmount()

  const read = show(row('completed', 'executing'))
  await read.get('.row-toggle').trigger('click')
  await read.setProps({ row: row('completed', 'completed') })
  expect(rows(read)).toBe(2)
  read.unmount()
})

it('opens for what a search leads to', () => {
  const page = show(row('completed', 'completed'), true)
  expect(rows(page)).toBe(2)
  page.unmount()
})
