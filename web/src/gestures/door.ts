/** The requests about fresh gestures and passkeys. */
import { t } from '@/locales'
import { reasonOr, request } from '@/wire/request'
import './texts.en.json'

/** A call as the person was shown it. */
export interface ShownCall {
  sessionId: string
  callId: string
  digest: string
  args?: Record<string, unknown>
  argsText?: string
}

type Json = Record<string, unknown>

export interface Passkey {
  id: string
  name: string
  createdAt: string
  lastUsedAt?: string | null
  relyingParty: string
  usableHere: boolean
}

export interface PasskeyList {
  items: Passkey[]
  hasPassword: boolean
  relyingParty?: string | null
}

export const door = {
  challenge: (calls: ShownCall[]) => request('post', '/api/gestures/challenge', { body: { calls } }) as Promise<{ publicKey?: Json | null; password: boolean }>,
  make: (body: { credential: Json } | { password: string; calls: ShownCall[] }) =>
    request('post', '/api/gestures', { body: { calls: [], ...body } }) as Promise<{ gestures: { sessionId?: string | null; gesture: string }[] }>,
  passkeys: () => request('get', '/api/passkeys') as Promise<PasskeyList>,
  askPasskey: (gesture: string | null) => request('post', '/api/passkeys/challenge', { body: { gesture } }) as Promise<{ publicKey: Json }>,
  addPasskey: (name: string, credential: Json) => request('post', '/api/passkeys', { body: { name, credential } }) as Promise<Passkey>,
  renamePasskey: (id: string, name: string) => request('patch', '/api/passkeys/{id}', { path: { id }, body: { name } }),
  removePasskey: (id: string, gesture: string | null) => request('delete', '/api/passkeys/{id}', { path: { id }, body: { gesture } }),
}

export function reasonOf(error: unknown): string {
  return reasonOr(error, t('gestures.noAnswer'))
}
