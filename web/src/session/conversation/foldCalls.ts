/** What events say of calls: each call is one entry, from the moment that the model asks for it to its end. */
import { isObject, stringOf } from '@/wire/json'
import type { CallReview, CallStatus, CallView, JsonObject, Person, QueueCall } from '@/wire/types'
import type { Draft, Place, Told } from './draft'

export function approvalRequired(draft: Draft, { place, data }: Told): void {
  const originalArgs = isObject(data.originalArgs) ? data.originalArgs : undefined
  updateCall(draft, place, data, { status: 'pending', ...defined({ askedBy: data.askedBy as CallView['askedBy'], originalArgs }) })
}

/** Nobody has asked about it yet; rules may decide it at once. */
export function calledByView(draft: Draft, { place, data }: Told): void {
  updateCall(draft, place, data, { status: 'pending', askedBy: data.askedBy as CallView['askedBy'] })
}

export function decided(draft: Draft, { place, data }: Told): void {
  const isTakenBack = data.scope === 'taken_back'
  const status: CallStatus = isTakenBack ? 'pending' : data.approved ? 'approved' : 'rejected'
  const before = draft.callEntry(stringOf(data.callId) ?? '')?.call
  const edited = data.edited === true
  updateCall(draft, place, data, {
    status,
    edited,
    editedBy: data.editedBy as Person | undefined,
    decidedBy: isTakenBack ? undefined : (data.by as Person | undefined),
    review: isTakenBack ? undefined : (data.review as CallReview | undefined),
    reason: isTakenBack ? undefined : stringOf(data.reason),
    ...(data.gesture !== undefined && { gesture: stringOf(data.gesture) }),
    ...(data.dryRun !== undefined && { tookResult: true }),
    ...(edited && isObject(data.args) && before ? { originalArgs: before.originalArgs ?? before.args } : {}),
  })
}

export function started(draft: Draft, { place, data }: Told): void {
  updateCall(draft, place, data, { status: 'executing', ...defined({ view: stringOf(data.view) }) })
}

export function ended(draft: Draft, { place, text, data }: Told): void {
  updateCall(draft, place, data, {
    status: (stringOf(data.status) ?? 'completed') as CallStatus,
    output: text,
    ...defined({
      durationMs: data.durationMs as number | undefined,
      exitCode: data.exitCode as number | undefined,
      truncated: data.truncated as CallView['truncated'],
      attachments: data.attachments as CallView['attachments'],
      blocks: data.blocks as CallView['blocks'],
      cause: stringOf(data.cause),
      // Views read it; the sandbox's own tools have none.
      structured: data.server !== 'sandbox' && isObject(data.structured) ? data.structured : undefined,
    }),
  })
}

/** A person said whether a call of unknown outcome happened; the row keeps their word. */
export function settled(draft: Draft, place: Place, data: JsonObject): void {
  const by = isObject(data.by) ? (data.by as unknown as Person) : undefined
  updateCall(draft, place, data, defined({ settled: { happened: data.happened === true, by } }))
}

/** The call queue knows the latest state of its calls, and the arguments of an edited one. */
export function mergeCall(draft: Draft, call: QueueCall): void {
  const entry = draft.callEntry(call.callId)
  if (!entry) return
  const { status, decidedBy, reason, edited, editedBy, args, originalArgs, digest } = call
  draft.replace({
    ...entry,
    call: { ...entry.call, ...defined({ status, decidedBy, reason, edited, editedBy, args, originalArgs, digest }) },
  })
}

export function updateCall(draft: Draft, place: Place, data: JsonObject, change: Partial<CallView>): void {
  const callId = stringOf(data.callId)
  if (!callId) return
  const facts = defined({
    name: stringOf(data.name),
    server: stringOf(data.server),
    args: isObject(data.args) ? data.args : undefined,
    digest: stringOf(data.digest),
  })
  const known = draft.callEntry(callId)
  if (known) {
    draft.replace({ ...known, call: { ...known.call, ...facts, ...change } })
    return
  }
  // The page of history may begin after the call was asked.
  const call: CallView = { callId, name: '', server: '', args: {}, status: 'pending', edited: false, ...facts, ...change }
  draft.push({ kind: 'call', key: callId, ...place, call })
}

/** Without the keys that are undefined, so that spreading it never wipes what is known. */
function defined<T extends object>(value: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}
