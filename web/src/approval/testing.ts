/** Calls for the tests beside. */
import type { CallView, QueueCall } from '@/wire/types'

export function queueCall(callId: string, change: Partial<QueueCall> = {}): QueueCall {
  return {
    callId,
    name: 'write_file',
    args: { path: `${callId}.md`, content: 'one\ntwo\n' },
    queuePosition: 1,
    totalInQueue: 1,
    server: 'files',
    description: 'Writes a file.',
    schema: {
      type: 'object',
      properties: { path: { type: 'string' }, content: { type: 'string' } },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    annotations: {},
    runsIn: { kind: 'sandbox', hosts: [] },
    why: 'Asked by rule “ask everything”',
    digest: `digest-${callId}`,
    since: '2026-11-21T10:00:00Z',
    mayDecide: true,
    status: 'pending',
    edited: false,
    firstUse: false,
    ...change,
  }
}

export function callView(change: Partial<CallView> = {}): CallView {
  return { callId: 'call_1_0', name: 'execute_command', server: 'sandbox', args: { command: 'ls -l' }, status: 'completed', edited: false, ...change }
}

export const NOW = Date.parse('2026-11-21T10:03:00Z')
