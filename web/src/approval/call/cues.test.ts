import { expect, it } from 'vitest'
import type { QueueCall, RunsIn } from '@/wire/types'
import { cuesOf, needsItsOwnLook } from './cues'

const call = (runsIn: RunsIn): QueueCall => ({ callId: 'c', name: 'post', server: 's', status: 'pending', args: {}, runsIn, annotations: { destructiveHint: true } }) as unknown as QueueCall

it.each<[RunsIn, boolean]>([
  [{ kind: 'sandbox', hosts: [] }, false],
  [{ kind: 'container', hosts: [] }, false],
  [{ kind: 'container', hosts: ['api.example'] }, true],
  [{ kind: 'remote', hosts: ['mcp.example'] }, true],
])('says of %o whether it leaves the sandbox: %s', (runsIn, leaves) => {
  expect(cuesOf(call(runsIn)).some(({ kind }) => kind === 'leaves')).toBe(leaves)
  // Whatever runs elsewhere and destroys wants a look of its own.
  expect(needsItsOwnLook(call(runsIn))).toBe(runsIn.kind !== 'sandbox')
})
