// An authorisation server that other people wrote (npm `oidc-provider`), and an MCP server that takes its
// tokens and no others. Prints `{"mcp": …, "issuer": …}` when both listen, and is asked at `/counts` what
// it has seen. Everybody who comes is signed in and allows what is asked: the product's part is tested.

import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const seen = { registrations: 0, codes: 0, refreshes: 0, revocations: 0, calls: 0, strangers: 0 };
const settings = JSON.parse(process.env.PROVIDER ?? '{}');
const known = new Set();
const ended = new Set();
const SCOPES = ['read', 'write'];

function listen(server) {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`));
  });
}

const issuing = createServer();
const issuer = await listen(issuing);
const serving = createServer();
const origin = await listen(serving);
const resource = `${origin}/mcp`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'registered',
      client_secret: 'swordfish-of-the-client',
      redirect_uris: settings.redirect ? [settings.redirect] : ['http://127.0.0.1/unused'],
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
      application_type: 'native',
    },
  ],
  scopes: [...SCOPES, 'openid', 'offline_access'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, indicator) => {
        if (indicator !== resource) throw new Error(`no such resource: ${indicator}`);
        return { scope: SCOPES.join(' '), audience: resource, accessTokenFormat: 'opaque' };
      },
    },
  },
  ttl: { AccessToken: settings.seconds ?? 3600, ClientCredentials: 3600 },
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
provider.on('registration_create.success', () => (seen.registrations += 1));
provider.on('grant.success', (context) => {
  const type = context.oidc.params.grant_type;
  if (type === 'authorization_code') seen.codes += 1;
  if (type === 'refresh_token') seen.refreshes += 1;
});
provider.on('grant.error', (context, error) => {
  if (process.env.DEBUG) console.error(error, context?.oidc?.params?.grant_type);
});
provider.on('access_token.destroyed', () => (seen.revocations += 1));
provider.on('grant.revoked', () => (seen.revocations += 1));

async function interact(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  let result;
  if (prompt.name === 'login') {
    result = { login: { accountId: 'somebody' } };
  } else {
    const grant = grantId
      ? await provider.Grant.find(grantId)
      : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(['openid', 'offline_access', ...SCOPES].join(' '));
    grant.addResourceScope(resource, params.scope ?? SCOPES.join(' '));
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

issuing.on('request', (request, response) => {
  if (request.url.startsWith('/interaction/')) {
    interact(request, response).catch((error) => response.writeHead(500).end(String(error)));
  } else {
    provider.callback()(request, response);
  }
});

function json(response, status, body, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

async function tokenOf(request) {
  const [, token] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  if (!token) return undefined;
  const found =
    (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token));
  return found && !found.isExpired && found.aud === resource ? found : undefined;
}

const TOOLS = [
  { name: 'whoami', description: 'Says who calls', inputSchema: { type: 'object' } },
  { name: 'publish', description: 'Needs the scope write', inputSchema: { type: 'object' } },
];

function answer(message, token) {
  if (message.method === 'initialize') {
    return {
      protocolVersion: message.params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'protected', version: '1' },
    };
  }
  if (message.method === 'tools/list') return { tools: TOOLS };
  if (message.method === 'tools/call') {
    seen.calls += 1;
    const text = `${message.params.name} for ${token.accountId ?? token.clientId}`;
    return { content: [{ type: 'text', text }] };
  }
  return {};
}

async function serve(request, response) {
  const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
  if (request.url === '/counts') return json(response, 200, seen);
  if (request.url === '/end' && request.method === 'POST') {
    // Every token that came so far is taken back, as an operator of the provider would.
    for (const token of known) ended.add(token);
    return json(response, 200, {});
  }
  if (request.url === '/.well-known/oauth-protected-resource/mcp') {
    return json(response, 200, {
      resource,
      authorization_servers: [issuer],
      scopes_supported: settings.scopes ?? ['read'],
    });
  }
  if (!request.url.startsWith('/mcp')) return json(response, 404, { error: 'no such thing' });
  const token = await tokenOf(request);
  if (token) known.add(token.jti);
  if (!token || ended.has(token.jti)) {
    if (request.headers.authorization) seen.strangers += 1;
    return json(response, 401, { error: 'invalid_token' }, {
      'WWW-Authenticate': `Bearer error="invalid_token", resource_metadata="${metadata}"`,
    });
  }
  if (request.method !== 'POST') return json(response, 405, { error: 'POST only' });
  let body = '';
  for await (const piece of request) body += piece;
  const message = JSON.parse(body);
  const wantsMore = message.method === 'tools/call' && message.params.name === 'publish';
  if (wantsMore && !(token.scope ?? '').split(' ').includes('write')) {
    return json(response, 403, { error: 'insufficient_scope' }, {
      'WWW-Authenticate':
        `Bearer error="insufficient_scope", scope="write", resource_metadata="${metadata}"`,
    });
  }
  if (message.id === undefined) return json(response, 202);
  return json(response, 200, { jsonrpc: '2.0', id: message.id, result: answer(message, token) });
}

serving.on('request', (request, response) => {
  serve(request, response).catch((error) => json(response, 500, { error: String(error) }));
});
console.log(JSON.stringify({ mcp: resource, issuer }));
// Nobody reads on after the first line.
process.stdout.on('error', () => {});
process.stdin.on('end', () => process.exit()).resume();
