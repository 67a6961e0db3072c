import { mount } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { defineComponent, h } from 'vue'
import { i18n } from '@/locales'
import { provideRuleSession } from '@/rules/ofSession'
import type { QueueCall } from '@/wire/types'
import CardDryRun, { door } from './CardDryRun.vue'

const CALL = { callId: 'call_1_0', name: 'execute_command', server: 'sandbox', digest: 'd1', status: 'pending', mayDecide: true } as QueueCall
const BY = { id: 'usr_1', name: 'Ana' }

let menu: HTMLElement

beforeEach(() => {
  menu = document.body.appendChild(document.createElement('div'))
})
afterEach(() => menu.remove())

/** The entry of the open menu. */
function entry(): HTMLButtonElement {
  return menu.querySelector('[role=menuitem]') as HTMLButtonElement
}

function shown(call: Partial<QueueCall>) {
  const Session = defineComponent({
    setup() {
      provideRuleSession(() => 'ses_1')
      return () => h(CardDryRun, { call: { ...CALL, ...call }, heading: 'Run a command', place: menu })
    },
  })
  return mount(Session, { global: { plugins: [i18n] } })
}

it('asks for exactly what the card shows', () => {
  const begin = vi.spyOn(door, 'begin').mockResolvedValue({ ok: true, seq: 1 })
  shown({})
  entry().click()
  expect(begin).toHaveBeenCalledWith('ses_1', 'call_1_0', 'd1')
})

it('says why there is none', () => {
  const begin = vi.spyOn(door, 'begin').mockClear()
  const card = shown({ noDryRun: 'network' })
  expect(card.find('button').exists()).toBe(false)
  expect(entry().getAttribute('aria-disabled')).toBe('true')
  expect(entry().textContent).toContain('can reach other hosts')
  entry().click()
  expect(begin).not.toHaveBeenCalled()
})

it('shows what would change, and what it could not see', () => {
  const files = [
    { path: 'a.txt', change: 'modified', diff: '--- a\n+++ b\n@@ -1 +1 @@\n-one\n+ONE\n' },
    { path: 'b.bin', change: 'created', why: 'binary' },
  ] as const
  const card = shown({
    dryRun: {
      status: 'failed', by: BY, since: '2026-01-02T03:04:05Z', digest: 'd1', text: 'all wrong', exitCode: 3, durationMs: 1500, preparedMs: 250,
      counts: { created: 1, modified: 1, deleted: 0, folders: 1 }, files: [...files], unseen: ['live_process'],
    },
  })
  const text = card.text()
  for (const said of ['exit code 3', '2 files would change: 1 created, 1 modified, 0 deleted', '+ONE', '-one', 'b.bin', 'not text', 'all wrong', 'used a fresh one']) expect(text).toContain(said)
  expect(card.findAll('button').map((button) => button.text())).toEqual(['Dry run again', 'Discard'])
})

it('offers the result, or says why a call cannot have it', async () => {
  const report = { status: 'completed', by: BY, since: '2026-01-02T03:04:05Z', digest: 'd1', text: 'ok' } as const
  const card = shown({ dryRun: { ...report, result: 'r1' } })
  await card.get('button').trigger('click')
  expect(card.getComponent(CardDryRun).emitted('take')).toEqual([['r1']])
  const other = shown({ dryRun: { ...report, noResult: 'too_large' } })
  expect(other.findAll('button').map((button) => button.text())).toEqual(['Dry run again', 'Discard'])
  expect(other.text()).toContain('cannot be used')
})

it('ends one that runs', async () => {
  const drop = vi.spyOn(door, 'drop').mockRejectedValue(new Error('gone'))
  const card = shown({ dryRun: { status: 'running', by: BY, since: '2026-01-02T03:04:05Z', digest: 'd1' } })
  expect(card.text()).toContain('by Ana')
  await card.get('button').trigger('click')
  expect(drop).toHaveBeenCalledWith('ses_1', 'call_1_0')
  await vi.waitFor(() => expect(card.text()).toContain('No dry run: the server does not answer.'))
})
