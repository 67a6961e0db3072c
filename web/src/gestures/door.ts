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
  passkeyOnly?: boolean
  relyingParty?: string | null
}

export const door = {
  challenge: (calls: ShownCall[]) => request('post', '/api/gestures/challenge', { body: { calls } }) as Promise<{ publicKey?: Json | null; password: boolean; provider?: string | null }>,
  make: (body: { credential: Json } | { password: string; calls: ShownCall[] }) =>
    request('post', '/api/gestures', { body: { calls: [], ...body } }) as Promise<{ gestures: { sessionId?: string | null; gesture: string }[] }>,
  passkeys: () => request('get', '/api/passkeys') as Promise<PasskeyList>,
  askPasskey: (gesture: string | null) => request('post', '/api/passkeys/challenge', { body: { gesture } }) as Promise<{ publicKey: Json }>,
  addPasskey: (name: string, credential: Json) => request('post', '/api/passkeys', { body: { name, credential } }) as Promise<Passkey>,
  renamePasskey: (id: string, name: string) => request('patch', '/api/passkeys/{id}', { path: { id }, body: { name } }),
  /** Whether passkeys alone count, and the password nowhere. */
  setPasskeyOnly: (body: { passkeyOnly: boolean; recoveryByLink: boolean; gesture: string }) => request('put', '/api/passkey-only', { body }),
  removePasskey: (id: string, gesture: string | null) => request('delete', '/api/passkeys/{id}', { path: { id }, body: { gesture } }),
}

export function reasonOf(error: unknown): string {
  return reasonOr(error, t('gestures.noAnswer'))
}

// Passkeys of the browser (WebAuthn), in the JSON forms of the server.

export class PasskeyProblem extends Error {}

export function hasPasskeys(): boolean {
  return 'credentials' in navigator && 'PublicKeyCredential' in window
}

/** Makes a passkey. */
export async function createPasskey(options: Json): Promise<Json> {
  const user = options.user as Json
  const known = (options.excludeCredentials ?? []) as Json[]
  const publicKey = { ...options, challenge: bytes(options.challenge), user: { ...user, id: bytes(user.id) }, excludeCredentials: known.map(withBytes) }
  const made = await asked(navigator.credentials.create({ publicKey: publicKey as unknown as PublicKeyCredentialCreationOptions }))
  const response = made.response as AuthenticatorAttestationResponse
  return jsonOf(made, { attestationObject: text(response.attestationObject), transports: response.getTransports() })
}

/** Has a passkey answer. */
export async function usePasskey(options: Json, signal: AbortSignal): Promise<Json> {
  const allowed = (options.allowCredentials ?? []) as Json[]
  const publicKey = { ...options, challenge: bytes(options.challenge), allowCredentials: allowed.map(withBytes) }
  const made = await asked(navigator.credentials.get({ publicKey: publicKey as unknown as PublicKeyCredentialRequestOptions, signal }))
  const { authenticatorData, signature, userHandle } = made.response as AuthenticatorAssertionResponse
  return jsonOf(made, { authenticatorData: text(authenticatorData), signature: text(signature), userHandle: userHandle === null ? null : text(userHandle) })
}

async function asked(answer: Promise<Credential | null>): Promise<PublicKeyCredential> {
  try {
    const made = await answer
    if (made !== null) return made as PublicKeyCredential
  } catch (error) {
    throw new PasskeyProblem(error instanceof Error ? error.name : 'unknown')
  }
  throw new PasskeyProblem('NotAllowedError')
}

function jsonOf(made: PublicKeyCredential, response: Json): Json {
  return {
    id: made.id,
    rawId: text(made.rawId),
    type: made.type,
    authenticatorAttachment: made.authenticatorAttachment,
    clientExtensionResults: {},
    response: { clientDataJSON: text(made.response.clientDataJSON), ...response },
  }
}

function withBytes(credential: Json): Json {
  return { ...credential, id: bytes(credential.id) }
}

function bytes(base64url: unknown): Uint8Array {
  const binary = atob(String(base64url).replace(/-/g, '+').replace(/_/g, '/'))
  return Uint8Array.from(binary, (char) => char.charCodeAt(0))
}

function text(buffer: ArrayBuffer): string {
  const binary = String.fromCharCode(...new Uint8Array(buffer))
  return btoa(binary).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')
}
