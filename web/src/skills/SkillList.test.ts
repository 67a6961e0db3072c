import { flushPromises, mount } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { RequestError } from '@/wire/request'
import { door, type Skill, type SkillsPage } from './door'
import SkillList from './SkillList.vue'

let page: SkillsPage

function skill(name: string, more: Partial<Skill> = {}): Skill {
  return {
    id: `skl_${'0'.repeat(32)}`,
    name,
    description: `Does ${name}.`,
    scope: 'person',
    hash: '0'.repeat(64),
    version: 1,
    metadata: {},
    allowedTools: [],
    files: [{ path: 'SKILL.md', bytes: 100, executable: false }],
    bytes: 100,
    warnings: [],
    enabled: true,
    hidden: false,
    mayChange: true,
    createdBy: 'usr_1',
    createdAt: '2026-03-01T12:00:00Z',
    updatedBy: 'usr_1',
    updatedAt: '2026-03-01T12:00:00Z',
    ...more,
  }
}

beforeEach(() => {
  page = {
    skills: [],
    enabled: true,
    workspace: true,
    nextCursor: null,
    mayChangeTenant: false,
    limits: { bytes: 1, files: 1, kept: 1, offered: 50 },
  }
  vi.spyOn(door, 'list').mockImplementation(async () => page)
})
afterEach(() => vi.restoreAllMocks())

async function show() {
  const part = mount(SkillList)
  await flushPromises()
  return part
}

it('says what a skill is where there is none, and offers the team’s to admins alone', async () => {
  const part = await show()
  expect(part.text()).toContain('No skills yet.')
  expect(part.findAll('input[type=file]')).toHaveLength(1)
  page = { ...page, mayChangeTenant: true }
  expect((await show()).findAll('input[type=file]')).toHaveLength(2)
})

it('says of what a skill claims that it grants nothing, and which one is hidden', async () => {
  const claims = skill('pdf', { scope: 'tenant', allowedTools: ['Bash(*)'], hidden: true, mayChange: false })
  page = { ...page, skills: [claims] }
  const row = (await show()).get('.skill')
  expect(row.text()).toContain('Bash(*). Sepal ignores this.')
  expect(row.text()).toContain('You have a skill of this name')
  expect(row.findAll('input[type=checkbox]')).toHaveLength(1)
})

it('names every problem of an upload with what helps', async () => {
  const problems = [
    { at: 'name', message: 'it is missing', remedy: 'Add a line `name: …`.' },
    { at: 'allowed-tools', message: 'it grants nothing here', remedy: 'Give a rule.', isWarning: true },
  ]
  const refusal = { problems, detail: 'no' }
  vi.spyOn(door, 'add').mockRejectedValue(new RequestError(400, refusal))
  const part = await show()
  const input = part.get('input[type=file]')
  Object.defineProperty(input.element, 'files', { value: [new File(['x'], 'SKILL.md')] })
  await input.trigger('change')
  await flushPromises()
  const told = part.get('[role=alert]').text()
  expect(told).toContain('This is not a valid skill yet:')
  expect(told).toContain('name: it is missing. ')
  expect(told).toContain('Add a line `name: …`.')
  expect(told).toContain('Good to know:')
})
