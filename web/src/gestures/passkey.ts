/** Passkeys of the browser (WebAuthn), with the JSON forms that the server reads and writes. */

export class PasskeyProblem extends Error {}

type Json = Record<string, unknown>

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
