// Installs a package of npm into /workspace; what is installed is later seen at /packages. An order without a
// lock file gets one, and nothing is installed.
// Reads its order as one line of JSON, and tells each step as one line of JSON on stdout. What npm
// says goes to stderr.
const { spawn } = require('node:child_process')
const fs = require('node:fs')
const readline = require('node:readline')

const HOME = '/workspace'
const LOCK = `${HOME}/package-lock.json`

const tell = (what) => fs.writeSync(1, `${JSON.stringify(what)}\n`)

function fail(problem, text) {
  tell({ failed: { problem, text } })
  process.exit(1)
}

function npm(...args) {
  return new Promise((resolve) => {
    const child = spawn('npm', args, { cwd: HOME, stdio: ['ignore', 2, 2] })
    child.on('error', (error) => fail(error.code === 'ENOENT' ? 'no_tools' : 'other', `npm does not start: ${error.message}`))
    child.on('exit', (code, signal) => {
      // So the kernel ends what takes more memory than the sandbox has; the sandbox itself goes on.
      if (signal === 'SIGKILL') fail('too_large', `\`npm ${args[0]}\` needed more memory than an installation may use`)
      if (code !== 0) fail(null, `\`npm ${args[0]}\` ended with ${signal ?? `exit code ${code}`}`)
      resolve()
    })
  })
}

/** `name@version`, where a scope begins with another `@`. */
function split(spec) {
  const at = spec.indexOf('@', 1)
  return at < 0 ? [spec, 'latest'] : [spec.slice(0, at), spec.slice(at + 1)]
}

function programOf(order) {
  const folder = `node_modules/${order.name}`
  const about = JSON.parse(fs.readFileSync(`${HOME}/${folder}/package.json`, 'utf8'))
  const short = order.name.split('/').at(-1)
  const bins = typeof about.bin === 'string' ? { [short]: about.bin } : (about.bin ?? {})
  const names = Object.keys(bins)
  if (order.program !== null) {
    if (names.includes(order.program)) return order.program
    // Another of the packages may have it.
    if (/^[\w.-]+$/.test(order.program) && fs.existsSync(`${HOME}/node_modules/.bin/${order.program}`)) return order.program
    fail('no_program', `the package has no program \`${order.program}\`; it has: ${names.join(', ') || 'none'}`)
  }
  if (names.includes(short)) return short
  if (names.length === 1) return names[0]
  return fail('no_program', names.length === 0 ? 'the package has no program' : `the package has several programs: ${names.join(', ')}`)
}

async function install(order) {
  fs.writeFileSync('/tmp/ca.pem', order.authorities)
  // The registry may be on the gateway's own machine, never on this one.
  for (const name of ['NO_PROXY', 'no_proxy']) delete process.env[name]
  Object.assign(process.env, {
    HOME: '/tmp',
    TMPDIR: `${HOME}/.tmp`,
    NODE_EXTRA_CA_CERTS: '/tmp/ca.pem',
    npm_config_cache: `${HOME}/.cache`,
    npm_config_registry: order.registry,
    // Neither is there: npm takes no file twice.
    npm_config_userconfig: '/tmp/no-user-npmrc',
    npm_config_globalconfig: '/tmp/no-global-npmrc',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    npm_config_progress: 'false',
    npm_config_loglevel: 'http',
    npm_config_color: 'false',
    npm_config_fetch_retries: '2',
    npm_config_fetch_retry_factor: '2',
    npm_config_fetch_retry_mintimeout: '1000',
    npm_config_fetch_timeout: '60000',
    npm_config_omit_lockfile_registry_resolved: 'false',
  })
  fs.mkdirSync(`${HOME}/.tmp`, { recursive: true })
  const dependencies = { [order.name]: order.version ?? 'latest' }
  for (const [name, version] of order.with.map(split)) dependencies[name] = version
  fs.writeFileSync(`${HOME}/package.json`, JSON.stringify({ name: 'packages', private: true, dependencies }))
  if (order.lock === null) {
    tell({ phase: 'resolving' })
    await npm('install', '--package-lock-only', '--ignore-scripts')
    tell({ resolved: fs.readFileSync(LOCK, 'utf8') })
    process.exit(0)
  }
  fs.writeFileSync(LOCK, order.lock)
  tell({ phase: 'downloading' })
  await npm('ci', '--ignore-scripts')
  const text = fs.readFileSync(LOCK, 'utf8')
  const lock = JSON.parse(text)
  const packages = Object.entries(lock.packages).filter(([path]) => path !== '')
  const unpinned = packages.find(([, it]) => !it.integrity && !it.link)
  if (unpinned) fail('wrong_hash', `the registry gives no hash for \`${unpinned[0]}\``)
  tell({ phase: 'installing' })
  const scripted = packages.filter(([, it]) => it.hasInstallScript).map(([path]) => path.split('node_modules/').at(-1))
  if (order.scripts && scripted.length > 0) await npm('rebuild', '--foreground-scripts')
  const program = programOf(order)
  for (const left of ['.cache', '.tmp']) fs.rmSync(`${HOME}/${left}`, { recursive: true, force: true })
  tell({
    done: {
      version: lock.packages[`node_modules/${order.name}`].version,
      lock: text,
      pins: packages.map(([path, it]) => [path, it.version, it.integrity ?? '']).sort(),
      program: [`/packages/node_modules/.bin/${program}`],
      environment: {},
      skippedScripts: order.scripts ? [] : scripted,
    },
  })
  // The gateway may hold stdin open.
  process.exit(0)
}

readline.createInterface({ input: process.stdin }).once('line', (line) => {
  install(JSON.parse(line)).catch((error) => fail(error.code === 'ENOSPC' || error.code === 'EDQUOT' ? 'too_large' : 'other', String(error.message ?? error)))
})
