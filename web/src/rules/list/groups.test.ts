import { expect, it } from 'vitest'
import { ruleItem } from '@/rules/testing'
import { factsOf } from '@/rules/words'
import { groupsOf } from './groups'

it('lists what commands may reach apart from what decides calls', () => {
  const hosts = ruleItem('hosts', { scope: 'session', origin: 'session', network: ['pypi.org'], uses: 0 })
  const groups = groupsOf([hosts, ruleItem('read')]).map((group) => [group.effect, group.rules.length])
  expect(groups).toEqual([
    ['allow', 1],
    ['network', 1],
  ])
  expect(factsOf(hosts)).not.toContain('never used')
  expect(factsOf(ruleItem('read', { uses: 0 }))).toContain('never used')
})
