import { expect, it } from 'vitest'
import { bodyOf, draftOf, mayDo, type Definition } from './door'

const definition: Definition = {
  instructions: 'Be brief.',
  models: [{ provider: 'p', model: 'a b' }],
  effort: 'low',
  tools: [{ server: 'sandbox', tools: ['read_file', 'list_files'] }, { server: 'wiki' }],
  skills: ['style'],
  rules: [{ effect: 'deny', server: 'sandbox', tool: 'execute_command', when: { command: [{ words: ['rm'], more: true }] } }],
  budget: { limitUsd: 0.5, warnPercent: 80, isHard: true },
  openings: ['Hello'],
  files: [{ id: 'f'.repeat(64), name: 'a.txt', mediaType: 'text/plain', bytes: 1 }],
}

it('gives back what it was given, with the conditions of rules', () => {
  const body = bodyOf(draftOf({ name: 'Writer', description: 'Writes', definition }, ['sandbox', 'other']))
  expect(body).toEqual({
    name: 'Writer',
    description: 'Writes',
    instructions: 'Be brief.',
    models: definition.models,
    effort: 'low',
    tools: definition.tools,
    skills: ['style'],
    rules: definition.rules,
    budget: { limitUsd: 0.5, warnPercent: 80, isHard: true },
    openings: ['Hello'],
    files: [{ id: 'f'.repeat(64) }],
  })
})

it('narrows nothing where nothing was chosen', () => {
  const body = bodyOf({ ...draftOf(null, ['sandbox']), name: ' New ', openings: ['', ' '] })
  expect(body).toEqual({ name: 'New', description: '', instructions: '', models: [], rules: [], openings: [], files: [] })
})

it('never makes all tools of a server of none', () => {
  const none = { ...definition, tools: [{ server: 'sandbox', tools: [] }] }
  const body = bodyOf(draftOf({ name: 'Writer', description: '', definition: none }, []))
  expect(body.tools).toEqual([])
})

it('orders the levels', () => {
  expect(mayDo({ level: 'edit' }, 'use')).toBe(true)
  expect(mayDo({ level: 'see' }, 'use')).toBe(false)
})
