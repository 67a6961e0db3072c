// @vitest-environment happy-dom
import { flushPromises, mount } from '@vue/test-utils'
import { createPinia } from 'pinia'
import { expect, it } from 'vitest'
import { nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { nextTask } from '@/browser/scheduling'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import StatusBar from '@/shell/StatusBar.vue'
import { usePerson } from '@/stores/person'
import type { SandboxState, SystemReady } from '@/wire/types'
import TroubleStrip from './TroubleStrip.vue'

const SANDBOX: SandboxState = { kind: 'docker', network: 'none', ok: true }
const FULL = { ...SANDBOX, diskPressure: { freeBytes: 250 * 1_048_576 + 7, minFreeBytes: 512 * 1_048_576 } }

it('says that tools stand still while the disk is nearly full, and no longer', async () => {
  const pinia = createPinia()
  usePerson(pinia).isKnown = true
  usePerson(pinia).me = { user: { id: 'ana' }, encrypted: true } as never
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: '/s/:id', name: 'session', component: { render: () => null } },
      { path: '/admin/system', component: { render: () => null } },
    ],
  })
  await router.push('/s/a')
  const mounting = { global: { plugins: [pinia, i18n, router] } }
  const strip = mount(TroubleStrip, mounting)
  const bar = mount(StatusBar, mounting)
  const session = useSession(pinia)
  session.linkState = 'open'
  const tell = async (sandbox: SandboxState) => {
    session.ready = { storage: { kind: 'sqlite' }, version: '0.1.0', sandbox } as SystemReady
    await nextTick()
    // The bar tells it a task later.
    await nextTask()
    await flushPromises()
  }

  await tell(SANDBOX)
  expect(strip.text()).toBe('')
  expect(bar.get('.sandbox').text()).toBe('Docker, no network')

  await tell(FULL)
  expect(strip.text()).toContain('The disk is nearly full (250 MB left).')
  expect(strip.get('a').attributes('href')).toBe('/admin/system')
  expect(bar.get('.sandbox').text()).toBe('Docker, paused: disk nearly full')

  await tell(SANDBOX)
  expect(strip.text()).toBe('')
})
