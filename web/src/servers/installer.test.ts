import { expect, it, describe } from 'vitest'
import type { ServerConfig } from '@/wire/restTypes'
import { fetching, installer } from './installer'

describe('installations', () => {
  it.each([
    ['npx -y some-server', 'npx'],
    ['npx.cmd some-server', 'npx'],
    ['/usr/bin/npx some-server', 'npx'],
    ['npx --offline some-server', null],
    ['uvx mcp-server-time', 'uvx'],
    ['bun x some-server', 'bun x'],
    ['bun run server.ts', null],
    ['npm exec some-server', 'npm exec'],
    ['npm start', null],
    ['uv tool run some-server', 'uv tool'],
    ['uv run server.py', null],
    ['uv run --with mcp server.py', 'uv run'],
    ['pipx run some-server', 'pipx'],
    ['deno run -A npm:some-server', 'deno run'],
    ['deno run -A server.ts', null],
    ['node server.js', null],
    ['npx-like', null],
  ])('knows whether "%s" fetches a package', (line, expected) => {
    expect(fetching(line.split(' '))).toBe(expected)
  })

  it.each<[ServerConfig, string | null]>([
    [{ transport: 'stdio', command: 'npx', args: ['-y', 'some-server'] }, 'npx'],
    [{ command: 'uvx', args: ['mcp-server-time'] }, 'uvx'],
    [{ transport: 'stdio-docker', containerImage: 'node', args: ['npx', 'some-server'] }, 'npx'],
    [{ transport: 'http', url: 'https://mcp.example.com/npx' }, null],
  ])('says so of the entry %j', (config, expected) => {
    expect(installer(config)).toBe(expected)
  })
})
