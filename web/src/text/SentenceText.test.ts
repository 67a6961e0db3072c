import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { dateMinute } from '@/locales/format'
import SentenceText from './SentenceText.vue'

it('sets what is of the call in the face of code, without backticks, and says times as they are here', () => {
  const sentence = 'Until 2026-11-25 21:07 UTC, for you, run `rm 2026-11-25 21:07 UTC` of `files` without asking.'
  const view = mount(SentenceText, { props: { sentence } })
  expect(view.findAll('code').map((code) => code.text())).toEqual(['rm 2026-11-25 21:07 UTC', 'files'])
  expect(view.text()).toContain(`Until ${dateMinute('2026-11-25T21:07:00Z')}, for you`)
  expect(view.text()).not.toContain('`')
})
