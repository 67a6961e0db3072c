/** The requests of a sign-in at an OpenID provider, and the words for a refusal. */
import { i18n } from '@/locales'
import { problemOf, request, RequestError } from '@/wire/request'
import '@/shell/door.en.json'

export interface ProviderAnswer {
  state: string
  code?: string | undefined
  iss?: string | undefined
  error?: string | undefined
}

export const door = {
  begin: (id: string, returnTo: string) => request('post', '/api/auth/oidc/{id}/start', { path: { id }, body: { returnTo } }),
  finish: (id: string, body: ProviderAnswer) => request('post', '/api/auth/oidc/{id}/finish', { path: { id }, body }),
}

/** Why nobody was signed in, and what to do. */
export function wordsOf(error: unknown): string {
  const { t, te } = i18n.global
  if (!(error instanceof RequestError)) return t('signIn.failed', { reason: '' })
  const known = [`signIn.reason.${problemOf(error).reason}`, `signIn.code.${error.code}`].find((key) => te(key))
  return known ? t(known) : t('signIn.failed', { reason: error.message })
}
