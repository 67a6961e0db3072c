/** An OpenID provider that other people wrote (npm `oidc-provider`), with one account, whose page asks for a click. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { Provider } from 'oidc-provider'

const CLIENT = { client_id: 'sepal', client_secret: 'the secret of the gateway' }

export class OpenIdProvider {
  /** Listens, so that a gateway can be told its address; `serve` makes it answer. */
  static async start(account) {
    const provider = new OpenIdProvider()
    provider.account = account
    provider.server = createServer((request, response) => provider.answer(request, response))
    provider.server.listen(0, '127.0.0.1')
    await once(provider.server, 'listening')
    provider.issuer = `http://127.0.0.1:${provider.server.address().port}`
    return provider
  }

  /** The settings of a gateway whose people sign in here. */
  get env() {
    return {
      SPL_OIDC_ISSUER: this.issuer,
      SPL_OIDC_CLIENT_ID: CLIENT.client_id,
      SPL_OIDC_CLIENT_SECRET: CLIENT.client_secret,
      SPL_OIDC_NAME: 'Acme',
      SPL_OIDC_SCOPES: 'openid profile email groups',
    }
  }

  /** Knows the gateway at this address from now on. */
  serve(gateway) {
    const { account } = this
    const base = `${gateway}/api/auth/oidc/company`
    this.provider = new Provider(this.issuer, {
      clients: [
        {
          ...CLIENT,
          redirect_uris: [`${base}/callback`],
          backchannel_logout_uri: `${base}/back-channel-logout`,
          backchannel_logout_session_required: true,
        },
      ],
      scopes: ['openid', 'profile', 'email', 'groups'],
      claims: {
        openid: ['sub', 'sid'],
        profile: ['name', 'preferred_username'],
        email: ['email', 'email_verified'],
        groups: ['groups'],
      },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
      interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
      // Its own dispatcher keeps it from addresses of this machine, where the gateway is.
      fetch: (url, { dispatcher: _, ...options }) => fetch(url, options),
      findAccount: (_context, id) => ({ accountId: id, claims: () => ({ ...account, sub: id }) }),
    })
    this.callback = this.provider.callback()
  }

  async answer(request, response) {
    if (!request.url.startsWith('/interaction/')) return this.callback(request, response)
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html')
      return response.end(`<!doctype html><title>Acme</title><form method="post"><button name="who">I am ${this.account.preferred_username}</button><button formaction="?no">Cancel</button></form>`)
    }
    return this.interact(request, response)
  }

  /** Signs the account in, and allows whatever is asked. */
  async interact(request, response) {
    if (request.url.endsWith('?no')) {
      return this.provider.interactionFinished(request, response, { error: 'access_denied', error_description: '<b>no</b>' })
    }
    const { params, grantId } = await this.provider.interactionDetails(request, response)
    const accountId = this.account.sub
    const grant = grantId ? await this.provider.Grant.find(grantId) : new this.provider.Grant({ accountId, clientId: params.client_id })
    grant.addOIDCScope(params.scope)
    const result = { login: { accountId }, consent: { grantId: await grant.save() } }
    return this.provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true })
  }

  close() {
    this.server.closeAllConnections()
    this.server.close()
  }
}
