/** The recipes of deploy/, as they stand there, in front of the real program: https, below a path. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Gateway } from '../browser/support/gateway.mjs'
import { until } from '../browser/support/until.mjs'
import { Person, ask, signIn } from './person.mjs'

const PASSWORD = 'correct horse battery staple'
const WORDS = 40

/** Debian has the servers where only root looks. */
const PATH = `${process.env.PATH}:/usr/sbin`

/** The recipe with this machine's addresses; each of them must have stood there. */
function recipe(file, changes) {
  let text = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8')
  for (const [from, to] of changes) {
    assert.ok(text.includes(from), `deploy/${file} has no \`${from}\` (any more)`)
    text = text.replaceAll(from, to)
  }
  return text
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** What starts each proxy: `[program, ...arguments]`, after its files are written. */
const PROXIES = {
  Caddy({ folder, port, upstream, certificate, key }) {
    const site = recipe('caddy/Caddyfile', [
      ['sepal.example.org {', `localhost:${port} {`],
      ['# tls /etc/ssl/sepal.pem /etc/ssl/sepal.key', `tls ${certificate} ${key}`],
      ['127.0.0.1:3000', upstream],
    ])
    const file = join(folder, 'Caddyfile')
    writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n\tgrace_period 1s\n\tdefault_bind 127.0.0.1\n}\n${site}`)
    return ['caddy', 'run', '--adapter', 'caddyfile', '--config', file]
  },
  nginx: (place) => nginx(place, []),
  // Traefik's `stripPrefix`, done by nginx: the gateway never sees the path.
  'a proxy that takes the path off': (place) => nginx(place, [['proxy_pass http://127.0.0.1:3000;', 'proxy_pass http://127.0.0.1:3000/;']]),
}

function nginx({ folder, port, upstream, certificate, key }, changes) {
  const site = recipe('nginx/sepal.conf', [
    ...changes,
    ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
    ['server_name sepal.example.org', 'server_name localhost'],
    ['/etc/ssl/sepal.pem', certificate],
    ['/etc/ssl/sepal.key', key],
    ['/var/log/nginx/access.log', join(folder, 'access.log')],
    ['127.0.0.1:3000', upstream],
  ])
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`)
  const root = process.getuid() === 0 ? 'user root;\n' : ''
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `${root}daemon off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary.join('\n')}\n${site}\n}\n`,
  )
  return ['nginx', '-p', folder, '-e', 'stderr', '-c', file]
}

/** The proxy and the gateway behind it, ended whatever happens. */
async function behind(start, tell) {
  const folder = mkdtempSync(join(tmpdir(), 'sepal-proxy-'))
  const [port, inner] = [await freePort(), await freePort()]
  const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate,
  ], { stdio: 'ignore' })
  const base = `https://localhost:${port}/sepal/`
  const home = join(folder, 'home')
  mkdirSync(home)
  const [program, ...words] = start({ folder, port, upstream: `127.0.0.1:${inner}`, certificate, key })
  let gateway
  let child
  try {
    gateway = await startGateway(inner, base)
    child = spawn(program, words, { env: { PATH, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home }, stdio: ['ignore', 'ignore', 'pipe'] })
    let log = ''
    child.stderr.on('data', (text) => (log += text))
    child.once('error', (error) => (log += error.message))
    const trust = readFileSync(certificate)
    try {
      await until(`${program} answers`, async () => (await ask(`${base}readyz`, { trust })).status === 200)
      await tell({ base, gateway, trust, folder })
    } catch (error) {
      throw new Error(`${error.message}\n--- ${program}:\n${log.slice(-3000)}\n--- gateway:\n${gateway.log.slice(-3000)}`, { cause: error })
    }
  } finally {
    if (child?.pid && child.exitCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
    }
    await gateway?.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A gateway that is told its public address and believes the proxy. */
async function startGateway(port, base) {
  const gateway = new Gateway(mkdtempSync(join(tmpdir(), 'sepal-proxied-')), {
    SPL_PUBLIC_URL: base,
    SPL_TRUSTED_PROXIES: '127.0.0.1',
    SPL_SANDBOX: 'none',
    SPL_LLM_SCRIPTED_PACE_MS: '20',
  })
  await gateway.launch(port)
  execFileSync(gateway.binary, ['admin', 'user', 'add', 'ana', '--role', 'owner', '--password-stdin'], {
    env: gateway.environment(),
    cwd: gateway.folder,
    input: `${PASSWORD}\n`,
  })
  return gateway
}

/** A turn whose pieces arrive one by one, not all at its end. */
async function streamedTurn(base, { cookie, trust, transports }) {
  const person = new Person(base, { cookie, trust, transports })
  try {
    await person.ready()
    assert.equal(person.socket.io.engine.transport.name, transports[0])
    await person.ok('message', { text: `stream: ${WORDS}` })
    await until('several pieces', () => person.all('agent:delta').length > 3)
    assert.equal(person.all('agent:response').length, 0, 'pieces came before the end')
    const [said] = (await person.wait('agent:response')).args
    assert.equal(said, Array.from({ length: WORDS }, (_, at) => `word${at + 1}`).join(' '))
  } finally {
    person.close()
  }
}

for (const [name, start] of Object.entries(PROXIES)) {
  test(`below /sepal/ behind ${name}: page, sign-in, a streamed turn over websocket and over polling`, async () => {
    await behind(start, async ({ base, gateway, trust, folder }) => {
      const page = await ask(base, { trust })
      assert.equal(page.status, 200)
      assert.match(page.text, /<base href="\/sepal\/"/)
      const moved = await ask(base.slice(0, -1), { trust })
      assert.equal(moved.status, 308)
      const script = /src="\.?\/?(assets\/[^"]+\.js)"/.exec(page.text)
      assert.ok(script, 'the page names its script below its base')
      assert.equal((await ask(`${base}${script[1]}`, { trust })).status, 200)

      const { cookie, setCookie, me } = await signIn(base, { name: 'ana', password: PASSWORD, trust })
      assert.match(setCookie, /^__Host-sepal=.*; Path=\/; .*HttpOnly; SameSite=Lax; Secure$/)
      assert.equal(me.encrypted, true)
      assert.ok((await gateway.cli('link')).startsWith(`${base}sign-in#`), 'a link leads to the public address')

      for (const transports of [['websocket'], ['polling']]) await streamedTurn(base, { cookie, trust, transports })

      const logged = join(folder, 'access.log')
      if (existsSync(logged)) {
        const log = readFileSync(logged, 'utf8')
        assert.match(log, /"POST \/sepal\/socket.io\/" 200/)
        assert.doesNotMatch(log, /sid=/, 'who reads the log could speak for a polling client')
      }

      const foreign = await ask(`${base}api/auth/login`, {
        method: 'POST',
        body: { name: 'ana', password: PASSWORD },
        headers: { origin: 'https://evil.example' },
        trust,
      })
      assert.equal(foreign.status, 403)
      assert.match(foreign.text, /SPL_ALLOWED_ORIGINS/)
      const stranger = await ask(`http://127.0.0.1:${gateway.port}/api/auth/me`, { headers: { host: 'other.example' } })
      assert.equal(stranger.status, 403)
      assert.match(stranger.text, /SPL_PUBLIC_URL/)
    })
  })
}
