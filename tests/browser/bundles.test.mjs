/** Bundles: a file is dropped, shown as what it is and runs, asked for its values, used, and replaced by a newer one. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()
const model = await ModelStandIn.start()
after(() => model.close())

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1
  return crc
})
const crc32 = (bytes) => ~bytes.reduce((crc, byte) => CRC[(crc ^ byte) & 255] ^ (crc >>> 8), -1) >>> 0

/** A ZIP archive of a few files, nothing packed. */
function zip(files) {
  const local = []
  const directory = []
  let at = 0
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(text)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt32LE(crc32(content), 10)
    facts.writeUInt32LE(content.length, 14)
    facts.writeUInt32LE(content.length, 18)
    facts.writeUInt16LE(name.length, 22)
    const entry = Buffer.concat([Buffer.from('PK\x03\x04'), facts, Buffer.from(name), content])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(at, 10)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 0]), facts, rest, Buffer.from(name)]))
    local.push(entry)
    at += entry.length
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(local.length, 4)
  end.writeUInt16LE(local.length, 6)
  end.writeUInt32LE(listed.length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...local, listed, Buffer.from('PK\x05\x06'), end])
}

function bundle(version, tools) {
  const listed = tools.map((name) => ({ name, description: `Can ${name}`, inputSchema: { type: 'object' } }))
  const script = `const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') answer(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } })
  if (method === 'tools/list') answer(id, { tools: ${JSON.stringify(listed)} })
  if (method === 'tools/call') answer(id, { content: [{ type: 'text', text: 'kept for ' + process.argv[2] + ' with ' + process.env.API_KEY.length }] })
})`
  const manifest = {
    manifest_version: '0.3', name: 'notes', display_name: 'Notes', version, description: 'Keeps notes.', author: { name: 'Ada' },
    server: {
      type: 'node', entry_point: 'server/index.js',
      mcp_config: { command: 'node', args: ['${__dirname}/server/index.js', '${user_config.who}'], env: { API_KEY: '${user_config.api_key}' } },
    },
    tools: tools.map((name) => ({ name, description: `Can ${name}` })),
    user_config: {
      who: { type: 'string', title: 'For whom', description: 'A name', required: true },
      api_key: { type: 'string', title: 'Key', description: 'From the site', required: true, sensitive: true },
    },
  }
  return zip({ 'manifest.json': JSON.stringify(manifest), 'server/index.js': script })
}

const env = { ...model.env, SPL_SANDBOX: 'bubblewrap' }

/** Drops a file on the form, as a browser does. */
async function drop(page, name, content) {
  const transfer = await page.evaluateHandle(([name, text]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
    const transfer = new DataTransfer()
    transfer.items.add(new File([bytes], name))
    return transfer
  }, [name, content.toString('base64')])
  await page.locator('form').dispatchEvent('drop', { dataTransfer: transfer })
}

for (const [device, context] of [['a desk', {}], ['a phone', { viewport: { width: 390, height: 800 } }]]) {
  story(`a bundle is dropped, added, called and replaced at ${device}`, { env, context }, async ({ app, page, session }) => {
    await page.goto(`${app.url}/servers/new`)
    await page.getByLabel('Configuration, command line or address').waitFor()
    await drop(page, 'bad.mcpb', Buffer.from('hello'))
    const shown = page.getByRole('region', { name: 'Add from a bundle' })
    await shown.getByRole('alert').filter({ hasText: 'bad.mcpb cannot be added: this is no bundle' }).waitFor()

    await shown.locator('input[type=file]').setInputFiles({ name: 'notes.mcpb', mimeType: 'application/octet-stream', buffer: bundle('1.0.0', ['keep']) })
    await shown.getByRole('heading', { name: 'Notes' }).waitFor()
    await shown.getByText('Version 1.0.0 by Ada').waitFor()
    await shown.getByText('node /packages/bundle/server/index.js ${user_config.who}').waitFor()
    await shown.getByText('Can keep').waitFor()
    // What is missing is said at its field, and nothing is lost by it.
    await shown.getByLabel('For whom').fill('Ada')
    await shown.getByRole('button', { name: 'Continue' }).click()
    await shown.getByText('the server needs this value').waitFor()
    await isAccessible(page, 'a bundle')
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
    await shown.getByLabel('Key').fill('swordfish')
    await page.keyboard.press('Enter')

    const draft = page.getByRole('region', { name: 'notes' })
    await draft.getByText('Unpacks version 1.0.0 of the bundle once, in a sandbox without network.').waitFor()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const installed = page.getByRole('region', { name: 'Package' })
    await installed.getByText(/^Version 1\.0\.0 of the bundle [0-9a-f]{12}, pinned by its SHA-256$/).waitFor()
    await page.getByText('Can keep').waitFor()
    assert.equal((await page.content()).includes('swordfish'), false)

    model.willCall(['keep', {}]).willSay('Done')
    await page.goto(`${app.url}/s/new`)
    await session.isReady()
    await session.composer.fill('go')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    // On a small screen the cards are in a sheet.
    if (page.viewportSize().width < 640) await page.getByRole('button', { name: /waiting\s*Open/ }).click()
    await session.press(/^Approve:/)
    assert.equal(await session.answer(), 'Done')
    const sent = JSON.stringify(model.requests.at(-1))
    assert.equal(sent.includes('kept for Ada with 9'), true, sent)

    await page.goto(`${app.url}/servers/new`)
    await page.getByRole('button', { name: 'Add from a bundle (.mcpb)' }).click()
    await shown.locator('input[type=file]').setInputFiles({ name: 'notes.mcpb', mimeType: 'application/octet-stream', buffer: bundle('2.0.0', ['keep', 'find']) })
    await shown.getByText(/^Now: version 1\.0\.0/).waitFor()
    assert.equal(await shown.getByLabel('For whom').inputValue(), 'Ada')
    assert.equal(await shown.getByLabel('Key').inputValue(), '')
    await isAccessible(page, 'a newer bundle')
    await shown.getByLabel('Key').fill('sesame')
    await shown.getByRole('button', { name: 'Replace' }).click()
    await installed.getByText(/^Version 2\.0\.0 of the bundle/).waitFor()
    await page.getByText('Can find').waitFor()
  })
}

story('what a bundle has installed beside it is shown before anything is', { env }, async ({ app, page }) => {
  const manifest = {
    manifest_version: '0.4', name: 'sums', display_name: 'Sums', version: '1.0.0', description: 'Adds numbers.', author: { name: 'Ada' },
    server: { type: 'uv', entry_point: 'src/server.py', mcp_config: { command: 'uv', args: ['run', '--directory', '${__dirname}', 'src/server.py'] } },
  }
  const project = '[project]\nname = "sums"\nversion = "1.0.0"\nrequires-python = ">=3.10"\ndependencies = ["mcp[cli]>=1.10", "httpx"]\n'
  const files = { 'manifest.json': JSON.stringify(manifest), 'src/server.py': '1' }
  await page.goto(`${app.url}/servers/new`)
  await page.getByRole('button', { name: 'Add from a bundle (.mcpb)' }).click()
  const shown = page.getByRole('region', { name: 'Add from a bundle' })
  const choose = (name, packed) => shown.locator('input[type=file]').setInputFiles({ name, mimeType: 'application/octet-stream', buffer: zip(packed) })
  await choose('bad.mcpb', { ...files, 'pyproject.toml': project.replace('"httpx"', '"own @ git+https://x.test/own"') })
  await shown.getByRole('alert').filter({ hasText: 'does not name a package of the index' }).waitFor()
  await choose('sums.mcpb', { ...files, 'pyproject.toml': project })
  await shown.getByText('Installed with it, from PyPI').waitFor()
  await shown.getByText('httpx, mcp[cli]>=1.10', { exact: true }).waitFor()
  await shown.getByText('python3 /packages/bundle/src/server.py').waitFor()
  await shown.getByText('Runtime: python >=3.10.').waitFor()
  await isAccessible(page, 'a bundle with packages')
  await shown.getByRole('button', { name: 'Continue' }).click()
  const draft = page.getByRole('region', { name: 'sums' })
  await draft.getByText('Installs the dependencies of version 1.0.0 of the bundle (httpx, mcp[cli]>=1.10) from PyPI once').waitFor()
  await draft.getByLabel('Allow install scripts').waitFor()
})
