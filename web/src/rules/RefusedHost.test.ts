// @vitest-environment happy-dom
import { flushPromises, mount } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import { i18n } from '@/locales'
import { door } from './door'
import { SESSION } from './testing'
import type { NoteEntry } from '@/session/conversation/conversation'
import { fold } from '@/session/conversation/fold'
import { useSession } from '@/session/store/session'
import { usePerson } from '@/stores/person'
import { RequestError } from '@/wire/request'
import type { Me } from '@/wire/restTypes'
import RefusedHost from './RefusedHost.vue'

const refused = { host: 'pypi.org', port: 443, entry: 'pypi.org', onRequest: true, reason: 'it is not among the hosts' }
let seq = 0

function tell(data: object): void {
  const session = useSession()
  const place = { seq: ++seq, at: '2026-11-26T10:00:00Z' }
  session.conversation = fold(session.conversation, [{ ...place, event: 'session:changed', args: [{ ...data, ...place }] }])
}

function show(role: string, change: object = {}) {
  usePerson().me = { user: { id: 'ana', name: 'Ana', role, installationAdmin: false }, csrfToken: 'x', installation: {} } as unknown as Me
  useSession().id = SESSION
  tell({ hostRefused: { ...refused, ...change } })
  const entry = useSession().conversation.entries.at(-1) as NoteEntry
  return mount(RefusedHost, { props: { entry }, global: { plugins: [i18n] } })
}

beforeEach(() => {
  setActivePinia(createPinia())
  seq = 0
  vi.restoreAllMocks()
})

it('allows a host for the session where the settings let people', async () => {
  const give = vi.spyOn(door, 'give').mockResolvedValue({} as never)
  const shown = show('member')
  expect(shown.text()).toContain('A command tried to reach pypi.org:443 and was refused.')
  const button = shown.get('button')
  expect(button.attributes('aria-label')).toBe('Allow in this session: pypi.org')
  await button.trigger('click')
  await flushPromises()
  expect(give).toHaveBeenCalledWith({ effect: 'allow', scope: 'session', session: SESSION, network: ['pypi.org'] })
  tell({ ruleGiven: { id: 'rul_1', sentence: 'x', by: { name: 'Ana' }, network: ['pypi.org'] } })
  await flushPromises()
  expect(shown.find('button').exists()).toBe(false)
  expect(shown.text()).toContain('Allowed in this session.')
  tell({ ruleTakenBack: { id: 'rul_1', by: { name: 'Ana' } } })
  await flushPromises()
  expect(shown.find('button').exists()).toBe(true)
})

it('says who may where the person may not, and why no rule would help', () => {
  const closed = show('member', { onRequest: false })
  expect(closed.find('button').exists()).toBe(false)
  expect(closed.text()).toContain('An admin can allow it')
  expect(show('admin', { onRequest: false }).find('button').exists()).toBe(true)
  expect(show('viewer').find('button').exists()).toBe(false)
  const lost = show('admin', { entry: null, reason: 'it is at a private or reserved address' })
  expect(lost.find('button').exists()).toBe(false)
  expect(lost.text()).toContain('No rule can allow it: it is at a private or reserved address.')
})

it('shows hidden characters of a host, says what went wrong, and lets the person try again', async () => {
  vi.spyOn(door, 'give').mockRejectedValue(new RequestError(403, { detail: 'only an administrator' } as never))
  const shown = show('member', { host: 'a\u202Eb' })
  expect(shown.text()).toContain('U+202E')
  await shown.get('button').trigger('click')
  await flushPromises()
  expect(shown.get('[role=alert]').text()).toContain('Not allowed.')
  expect(shown.get('button').attributes('aria-disabled')).not.toBe('true')
})
