/** Whether a call changes something that is there already, as far as that is known before it runs. */
import type { QueueCall } from '@/wire/types'
import { describeCall } from './describe'

/**
 * A hint of the server is about the tool, not about this call: a command says itself what it does, reading changes
 * nothing, and a file that is not there is only made. Where nothing more is known, the server's word stands.
 */
export function changesExisting(call: QueueCall): boolean {
  const { verb } = describeCall({ ...call, args: call.args ?? {} })
  if (verb === 'write' && call.file !== undefined) return call.file.exists
  return verb !== 'run' && verb !== 'read' && verb !== 'list' && verb !== 'listAll'
}
