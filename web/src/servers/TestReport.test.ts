// @vitest-environment happy-dom
import { mount } from '@vue/test-utils'
import { expect, test } from 'vitest'
import { i18n } from '@/locales'
import TestReport from './TestReport.vue'

test('tools that work only as tasks are counted and named as not offered', () => {
  const tools = [
    { name: 'long', description: 'Takes long', needsTasks: true, appOnly: false },
    { name: 'short', description: 'Does not', needsTasks: false, appOnly: false },
  ]
  const report = mount(TestReport, {
    props: { test: { ok: true, phases: [], tools, stderr: [] } },
    global: { plugins: [i18n] },
  })
  expect(report.get('p').text()).toContain('It works: 2 tools. 1 of them needs tasks and is not offered.')
  const rows = report.findAll('details li').map((row) => row.text())
  expect(rows[0]).toContain('not offered')
  expect(rows[1]).not.toContain('not offered')
})
