// @vitest-environment happy-dom
import { mount } from '@vue/test-utils'
import { createPinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter, type Router } from 'vue-router'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import TroubleStrip from '@/session/TroubleStrip.vue'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import { usePerson } from './person'

type Version = typeof import('./version')

let version: Version
let page: ReturnType<typeof mount>
let router: Router

const settled = async () => {
  for (let n = 0; n < 5; n++) await nextTick()
}

async function show(askVersion: () => Promise<void>): Promise<void> {
  router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/', component: { render: () => null } },
      { path: '/gone', component: () => Promise.reject(new Error('not loaded')) },
    ],
  })
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  version.watchForNewVersion(router, askVersion)
  const pinia = createPinia()
  usePerson(pinia).isKnown = true
  usePerson(pinia).me = { user: { id: 'ana' } } as never
  await router.push('/')
  page = mount(TroubleStrip, { attachTo: document.body, global: { plugins: [pinia, i18n, router] } })
}

beforeEach(async () => {
  version = await import('./version')
  version.isNewVersionReady.value = false
  version.isPartMissing.value = false
})
afterEach(() => {
  page.unmount()
  vi.restoreAllMocks()
})

it('says that a newer version is there only when the server says so', async () => {
  version.noteVersion('0.1.0')
  let said: string | null = null
  await show(async () => {
    if (said === null) throw new Error('no answer')
    version.noteVersion(said)
  })

  await router.push('/gone').catch(() => {})
  await settled()
  expect(page.text()).toBe('')

  said = '0.1.0'
  dispatchEvent(new Event('vite:preloadError', { cancelable: true }))
  await settled()
  expect(page.text()).toContain('Part of this page could not be loaded.')

  said = '0.2.0'
  await router.push('/gone').catch(() => {})
  await settled()
  expect(page.text()).toContain('A new version of Sepal is available.')
})

it('says what is wrong before what is new, and offline only without a connection', async () => {
  await show(async () => {})
  version.isNewVersionReady.value = true
  const session = useSession()
  const ask = vi.spyOn(rest, 'me').mockRejectedValue(new RequestError(401, {}))
  dispatchEvent(new Event('offline'))
  await settled()
  expect(page.text()).toContain('You are offline.')
  session.linkState = 'open'
  await settled()
  expect(page.text()).toContain('A new version of Sepal is available.')

  // A link that seems open may be dead.
  dispatchEvent(new Event('online'))
  ask.mockRejectedValue(new RequestError(0, {}))
  dispatchEvent(new Event('offline'))
  await settled()
  expect(page.text()).toContain('You are offline.')
  dispatchEvent(new Event('online'))
  await settled()
  expect(page.text()).toContain('A new version of Sepal is available.')
})

it('offers to reload once the server says another version, and never reloads by itself', async () => {
  const reload = vi.spyOn(location, 'reload').mockImplementation(() => {})
  await show(async () => {})

  version.noteVersion('0.1.0')
  version.noteVersion('0.1.0')
  await nextTick()
  expect(version.isNewVersionReady.value).toBe(false)
  expect(page.text()).toBe('')

  version.noteVersion('0.2.0')
  // Another gateway that is still the old one takes nothing back.
  version.noteVersion('0.1.0')
  await nextTick()
  expect(page.text()).toContain('A new version of Sepal is available.')
  expect(reload).not.toHaveBeenCalled()

  const button = page.get<HTMLButtonElement>('button')
  expect(button.text()).toBe('Reload')
  button.element.focus()
  expect(document.activeElement).toBe(button.element)
  await button.trigger('click')
  expect(reload).toHaveBeenCalledOnce()
})
