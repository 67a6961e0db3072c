import { expect, it } from 'vitest'
import { fetching, installer } from './installs'
import { recognise } from './recognise'

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

it('says so of whatever was pasted', () => {
  const of = (text: string) => recognise(text).servers.map(({ config }) => installer(config))
  expect(of('npx -y some-server')).toEqual(['npx'])
  expect(of('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')).toEqual(['uvx'])
  expect(of('docker run -i --rm node npx some-server')).toEqual(['npx'])
  expect(of('https://mcp.example.com/npx')).toEqual([null])
})
