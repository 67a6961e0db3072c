/** Signs in by a passkey alone: the browser offers those that it keeps for this page, and nobody types a name. */
import { usePasskey } from '@/gestures/door'
import { request } from '@/wire/request'
import type { Me } from '@/wire/restTypes'

export const passkeyDoor = {
  start: () => request('post', '/api/auth/passkey/start'),
  use: (options: Record<string, unknown>) => usePasskey(options, new AbortController().signal),
  finish: (credential: Record<string, unknown>) => request('post', '/api/auth/passkey/finish', { body: { credential } }),
}

/** Rejects with a `PasskeyProblem` where no passkey was used. */
export async function signInByPasskey(): Promise<Me> {
  const { publicKey } = await passkeyDoor.start()
  return passkeyDoor.finish(await passkeyDoor.use(publicKey))
}
