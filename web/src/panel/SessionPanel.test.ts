import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { h, nextTick } from 'vue'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import { EMPTY } from '@/session/conversation/conversation'
import { withRunning } from '@/session/conversation/streaming'
import { useSession } from '@/session/store/session'
import { openTab } from '@/stores/panels'
import { politeText } from '@/ui/announcer'
import { newest, no, settled, systemReady } from '@/wire/testing'
import type { SystemReady } from '@/wire/types'
import CompactionChoice from './CompactionChoice.vue'
import FreshContext from './FreshContext.vue'
import SessionPanel from './SessionPanel.vue'

vi.mock('socket.io-client', async () => (await import('@/wire/testing')).fakeIo())

const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })

beforeEach(() => setActivePinia(createPinia()))
afterEach(() => {
  openTab.value = null
  document.body.replaceChildren()
})

function show() {
  return mount(SessionPanel, { attachTo: document.body, global: { plugins: [i18n, router] } })
}

describe('the tabs', () => {
  it('are gone through by arrows, which open them', async () => {
    openTab.value = 'context'
    const panel = show()
    const selected = () => panel.get('[role=tab][aria-selected=true]')
    const press = async (key: string) => {
      await selected().trigger('keydown', { key })
      await nextTick()
    }
    expect(selected().text()).toBe('Context')
    await press('ArrowRight')
    expect([openTab.value, document.activeElement?.textContent?.trim()]).toEqual(['rules', 'Rules'])
    await press('End')
    await press('ArrowRight')
    expect(openTab.value).toBe('files')
    await press('ArrowLeft')
    expect(openTab.value).toBe('cost')
    expect(panel.get('[role=tabpanel]').text()).toBe('There is nothing here before the first message.')
    panel.unmount()
  })

  it('give the focus back to where it was', async () => {
    const button = document.body.appendChild(document.createElement('button'))
    button.focus()
    openTab.value = 'cost'
    const page = mount(() => (openTab.value ? h(SessionPanel) : null), { attachTo: document.body, global: { plugins: [i18n, router] } })
    const panel = page.get('aside')
    expect(document.activeElement).toBe(panel.element)
    await panel.trigger('keydown', { key: 'Escape' })
    expect(page.find('aside').exists()).toBe(false)
    await flushPromises()
    expect(document.activeElement).toBe(button)
    page.unmount()
  })
})

const turn = { turn: 1, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: '', since: '2026-01-01T00:00:00Z' } as const

it.each([
  ['before anything was said', EMPTY],
  ['while the agent works', withRunning(EMPTY, turn)],
])('offers a fresh context %s', async (_, conversation) => {
  useSession().conversation = conversation
  openTab.value = 'context'
  const panel = show()
  await flushPromises()
  await vi.waitFor(() => expect(panel.text()).toContain('Start with fresh context'))
  panel.unmount()
})

describe('the compaction', () => {
  it('shows what the session chose, and takes another choice at once', async () => {
    vi.useFakeTimers()
    setActivePinia(createPinia())
    const session = useSession()
    session.open('ses_1')
    await newest().ready({ ...systemReady(), compaction: ['delete-old', 'delete-middle'] })
    const choose = vi.spyOn(session, 'chooseCompaction').mockResolvedValue({ ok: true })
    const choice = mount(CompactionChoice, { global: { plugins: [i18n] } })
    const select = choice.get('select')
    expect(select.element.selectedOptions[0]?.text).toBe('delete-old, delete-middle')
    expect(select.findAll('option')).toHaveLength(6)
    await select.setValue('delete-middle')
    expect(choose).toHaveBeenCalledWith(['delete-middle'])
    await select.setValue('')
    expect(choose).toHaveBeenLastCalledWith([])
    choice.unmount()
    session.close()
    vi.useRealTimers()
  })
})

describe('a fresh context', () => {
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })

  let control: VueWrapper

  async function open(change: Partial<SystemReady['state']> = {}): Promise<void> {
    useSession().open('ses_1')
    await newest().ready({ state: { ...systemReady().state, ...change } })
    control = mount(FreshContext, { global: { plugins: [i18n, router] } })
  }

  async function press(): Promise<void> {
    await control.get('button').trigger('click')
    await settled()
  }

  const refusal = () => control.find('[role=alert]')

  beforeEach(() => {
    vi.useFakeTimers()
    setActivePinia(createPinia())
    politeText.value = ''
  })
  afterEach(() => {
    control.unmount()
    useSession().close()
    vi.useRealTimers()
  })

  it('says what it does, begins a new context, and says so aloud', async () => {
    await open()
    expect(control.get('button').text()).toBe('Start with fresh context')
    expect(control.text()).toContain('The transcript stays.')
    await press()
    expect(newest().last).toMatchObject({ command: 'history:reset', payload: {} })
    expect(politeText.value).toBe('')
    await newest().last.answer({ ok: true, seq: 1 })
    expect(politeText.value).toBe('New context. The model no longer sees what is above.')
    expect(refusal().exists()).toBe(false)
  })

  it('sends nothing while the agent works, and says what to do first', async () => {
    await open({ running: { turn: 1, iteration: 1, attempt: 0, phase: 'model', text: '', reasoning: '', since: '2026-01-01T00:00:00Z' } })
    await press()
    expect(newest().sent).toEqual([])
    expect(refusal().text()).toBe('The agent is working. Stop it first.')
  })

  it('says why there is no new context', async () => {
    await open()
    await press()
    await newest().last.answer(no('nothing_to_do', 'a turn is running; stop it first'))
    expect(refusal().text()).toBe('The context was not changed: a turn is running; stop it first')
    await newest().lose()
    await press()
    expect(refusal().text()).toBe('The context was not changed: you are offline.')
    expect(politeText.value).toBe('')
  })
})
