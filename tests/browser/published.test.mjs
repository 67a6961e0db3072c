/** A server that somebody published is found in the registry, and added after it was looked at. */
import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAccessible } from './support/axe.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

/** A mirror with one server that can be added, and one that cannot. */
function mirror() {
  const file = join(mkdtempSync(join(tmpdir(), 'sepal-mirror-')), 'servers.json')
  const server = (name, more) => ({ server: { name: `io.github.me/${name}`, version: '1.2.3', ...more } })
  writeFileSync(
    file,
    JSON.stringify({
      servers: [
        server('weather', {
          title: 'Weather',
          description: 'Tells it',
          remotes: [
            { type: 'streamable-http', url: 'https://weather.example/mcp', headers: [{ name: 'X-Key', isSecret: true, isRequired: true, description: 'From the site.' }] },
          ],
        }),
        server('dotnet', { description: 'Runs elsewhere', packages: [{ registryType: 'nuget', identifier: 'Elsewhere', version: '1.2.3', transport: { type: 'stdio' } }] }),
      ],
    }),
  )
  return { SPL_MCP_REGISTRY_FILE: file }
}

for (const [device, context] of [['a desk', {}], ['a phone', { viewport: { width: 390, height: 800 } }]]) {
  story(`a published server is found and added at ${device}`, { env: mirror(), context }, async ({ app, page, context: browser }) => {
    await page.goto(`${app.url}/servers/new`)
    await page.getByRole('button', { name: 'Choose from the registry' }).click()
    const registry = page.getByRole('region', { name: 'Choose from the registry' })
    await registry.getByText('2 servers').waitFor()
    await registry.getByRole('button', { name: 'Choose: io.github.me/dotnet' }).click()
    await registry.getByText('cannot be added, it needs .NET').waitFor()

    await registry.getByRole('searchbox').fill('weather')
    await registry.getByText('1 server', { exact: true }).waitFor()
    await registry.getByRole('button', { name: 'Choose: Weather' }).click()
    // A key that is missing is said at its field, and nothing is lost by it.
    await registry.getByRole('button', { name: 'Continue' }).click()
    await registry.getByText('the server needs this value').waitFor()
    if (device === 'a desk') await isAccessible(page, 'the registry')
    await registry.getByLabel('X-Key').fill('a key of a test')
    await page.keyboard.press('Enter')

    const draft = page.getByRole('region', { name: 'weather' })
    await draft.waitFor()
    assert.equal(await draft.getByLabel('Name', { exact: true }).inputValue(), 'weather')
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.waitForURL('**/servers')
    const { items } = await (await browser.request.get(`${app.url}/api/mcp`)).json()
    const added = items.find((item) => item.name === 'weather')
    assert.equal(added.config.url, 'https://weather.example/mcp')
    assert.deepEqual(added.secrets, ['X_KEY'])
  })
}
