/** Servers that are packages: pasted as their README says, installed while a person looks on, and failed with a reason. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { after, before } from 'node:test'
import { gzipSync } from 'node:zlib'
import { isAccessible } from './support/axe.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

/** The latest version of each package: what its registry says, and its archive. */
const shelf = new Map()
/** Archives that are asked for wait here, so that a phase is seen. */
let gate = Promise.resolve()
let address

const registry = createServer(async (request, response) => {
  const path = decodeURIComponent(request.url)
  const [, name, last] = /^\/([^/]+)(?:\/(.+))?$/.exec(path)
  const found = shelf.get(name)
  if (!found) return response.writeHead(404).end('{}')
  if (path.endsWith('.tgz')) {
    await gate
    return response.end(found.archive)
  }
  const { about } = found
  const said = last ? about : { name, 'dist-tags': { latest: about.version }, versions: { [about.version]: about } }
  response.setHeader('content-type', 'application/json')
  return response.end(JSON.stringify(said))
})

before(async () => {
  await new Promise((resolve) => registry.listen(0, '127.0.0.1', resolve))
  address = `http://localhost:${registry.address().port}`
})
after(() => registry.close())

/** One file of a tar. */
function packed(name, content) {
  const header = Buffer.alloc(512)
  const octal = (value, width) => `${value.toString(8).padStart(width - 1, '0')}\0`
  header.write(name, 0)
  for (const [text, at] of [['0000755\0', 100], ['0000000\0', 108], ['0000000\0', 116], [octal(content.length, 12), 124], [octal(0, 12), 136]]) header.write(text, at)
  header.write('        0', 148)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)])
}

/** A package whose program is an MCP server with those tools. */
function publish(name, version, tools) {
  const listed = tools.map(([tool, description]) => ({ name: tool, description, inputSchema: { type: 'object' } }))
  const script = `#!/usr/bin/env node
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') answer(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } })
  if (method === 'tools/list') answer(id, { tools: ${JSON.stringify(listed)} })
})`
  const about = { name, version, description: 'Keeps notes', bin: { [name]: 'index.js' } }
  const files = [packed('package/package.json', Buffer.from(JSON.stringify(about))), packed('package/index.js', Buffer.from(script))]
  const archive = gzipSync(Buffer.concat([...files, Buffer.alloc(1024)]))
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`
  const dist = { tarball: `${address}/${name}/-/${name}-${version}.tgz`, integrity }
  shelf.set(name, { archive, about: { ...about, dist } })
}

const env = () => ({ SPL_SANDBOX: 'bubblewrap', SPL_NPM_REGISTRY: address })
const paste = (page) => page.getByLabel('Configuration, command line or address')

for (const [device, context] of [['a desk', {}], ['a phone', { viewport: { width: 390, height: 800 } }]]) {
  story(`a line of a README is installed, used and renewed at ${device}`, { env, context }, async ({ app, page }) => {
    publish('notes', '1.0.0', [['keep', 'Keeps one'], ['drop', 'Drops one']])
    let open
    gate = new Promise((resolve) => (open = resolve))
    await page.goto(`${app.url}/servers/new`)
    await paste(page).fill('npx -y notes')
    await page.getByText('Installs notes 1.0.0 from npm once, in a sandbox that reaches only the registry.').waitFor()
    await page.getByText('Keeps notes').waitFor()
    await isAccessible(page, 'a server that will be installed')
    await page.getByRole('button', { name: 'Add', exact: true }).click()

    const shown = page.getByRole('region', { name: 'Package' })
    await shown.getByRole('status').filter({ hasText: 'Downloading' }).waitFor()
    await shown.getByRole('listitem').filter({ hasText: 'Resolving versions' }).waitFor()
    await isAccessible(page, 'an installation')
    open()
    await shown.getByText('notes 1.0.0, with 1 package in all, pinned as').waitFor()
    await page.getByText('Keeps one').waitFor()

    await shown.getByRole('button', { name: 'Look for a newer version' }).click()
    await shown.getByText('This is the newest version.').waitFor()
    publish('notes', '1.1.0', [['keep', 'Keeps many'], ['find', 'Finds one']])
    await shown.getByRole('button', { name: 'Look for a newer version' }).click()
    await shown.getByText('Version 1.1.0 is available').waitFor()
    await shown.getByText('Finds one').waitFor()
    await shown.getByText('Drops one').waitFor()
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
    await isAccessible(page, 'a newer version')
    await shown.getByRole('button', { name: 'Use version 1.1.0' }).click()
    await shown.getByText('Sessions use version 1.1.0 from their next call.').waitFor()
    await shown.getByText('notes 1.1.0, with 1 package in all, pinned as').waitFor()
  })
}

story('a package that is not there is said so before and after it is added, and tried again', { env }, async ({ app, page }) => {
  await page.goto(`${app.url}/servers/new`)
  await paste(page).fill('npx -y late')
  await page.getByRole('alert').filter({ hasText: 'npm has no package `late`: check the name of the package' }).waitFor()
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  const shown = page.getByRole('region', { name: 'Package' })
  await shown.getByRole('status').filter({ hasText: 'Not installed' }).waitFor()
  await shown.getByRole('alert').filter({ hasText: 'npm has no package `late`' }).waitFor()
  await isAccessible(page, 'a failed installation')
  publish('late', '2.0.0', [['look', 'Looks']])
  await shown.getByRole('button', { name: 'Try again' }).click()
  await shown.getByText('late 2.0.0, with 1 package in all, pinned as').waitFor()
})
