import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it } from 'vitest'
import { defineComponent } from 'vue'
import { usePerson } from '@/stores/person'
import { useWaiting } from '@/stores/waiting'
import { nameTab, showAttention } from './tabTitle'

beforeEach(() => {
  setActivePinia(createPinia())
  document.head.innerHTML = '<link rel="icon" href="./icon.svg">'
})

const icon = () => document.querySelector('link[rel="icon"]')?.getAttribute('href')

it('says on any page what waits, until it is decided or nobody is signed in', async () => {
  const page = mount(defineComponent({ setup: () => (showAttention(), () => null) }))
  nameTab('Settings')
  usePerson().enter({ user: { id: 'ana', name: 'Ana', role: 'owner', installationAdmin: false, rights: [] }, tenant: { id: 't', name: 't' }, csrfToken: '', installation: { name: '', version: '' }, authMode: 'password', encrypted: true })
  useWaiting().calls = 3
  await flushPromises()
  expect([document.title, icon()]).toEqual(['(3) Settings · Sepal', './icon-waiting.svg'])
  usePerson().lost()
  await flushPromises()
  expect([document.title, icon()]).toEqual(['Settings · Sepal', './icon.svg'])
  page.unmount()
})
