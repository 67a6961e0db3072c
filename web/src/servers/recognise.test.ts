import { describe, expect, it } from 'vitest'
import { fetching, installer, nameFrom, recognise, words } from './recognise'

describe('what was pasted', () => {
  it('is a configuration of any program', () => {
    const pasted = '{ "mcpServers": { "my tracker": { "command": "npx", "args": ["-y", "tracker"], "env": {"TOKEN": "x"}, "autoApprove": [] }, "docs": { "type": "http", "url": "https://docs.test/mcp" } } }'
    expect(recognise(pasted)).toEqual({
      kind: 'json',
      servers: [
        { name: 'my-tracker', config: { command: 'npx', args: ['-y', 'tracker'], env: { TOKEN: 'x' } } },
        { name: 'docs', config: { transport: 'http', url: 'https://docs.test/mcp' } },
      ],
    })
  })

  it('is one entry, with or without its name', () => {
    expect(recognise('{"command": "uvx", "args": ["mcp-server-git"]}').servers[0]?.name).toBe('git')
    expect(recognise('{"time": {"command": "uvx", "args": ["x"], "disabled": true}}').servers[0]).toEqual({
      name: 'time',
      config: { command: 'uvx', args: ['x'], enabled: false },
    })
  })

  it('is a file of VS Code, whose inputs are secrets', () => {
    const pasted =
      '{ "inputs": [{ "type": "promptString", "id": "api-key", "password": true }], "servers": { "web": { "type": "stdio", "command": "npx", "args": ["-y", "web"], "env": { "API_KEY": "${input:api-key}" } } } }'
    expect(recognise(pasted).servers).toEqual([
      { name: 'web', config: { transport: 'stdio', command: 'npx', args: ['-y', 'web'], env: { API_KEY: '${secret:API_KEY}' } } },
    ])
  })

  it('is a runner behind the shell of Windows', () => {
    const pasted = '{"mcpServers": {"time": {"command": "cmd", "args": ["/c", "npx", "-y", "time"]}}}'
    expect(recognise(pasted).servers[0]?.config).toEqual({ command: 'npx', args: ['-y', 'time'] })
  })

  it('is a command line', () => {
    expect(recognise('npx -y @modelcontextprotocol/server-filesystem "/work space"')).toEqual({
      kind: 'command',
      servers: [
        {
          name: 'filesystem',
          config: { transport: 'stdio', command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/work space'] },
        },
      ],
    })
    expect(recognise('uvx mcp-server-time').servers[0]?.name).toBe('time')
  })

  it('is a container image', () => {
    expect(recognise('docker run -i --rm -e KEY=1 --network=none mcp/time:2 --utc')).toEqual({
      kind: 'image',
      servers: [
        {
          name: 'time',
          config: { transport: 'stdio-docker', containerImage: 'mcp/time:2', args: ['--utc'], env: { KEY: '1' } },
        },
      ],
    })
    const inFile = '{"mcpServers":{"gh":{"command":"docker","args":["run","-i","--rm","-e","TOKEN","ghcr.test/gh"],"env":{"TOKEN":"t"}}}}'
    expect(recognise(inFile).servers[0]?.config).toEqual({
      transport: 'stdio-docker',
      containerImage: 'ghcr.test/gh',
      env: { TOKEN: 't' },
    })
  })

  it('is an address', () => {
    expect(recognise(' https://mcp.example.com/mcp ')).toEqual({
      kind: 'url',
      servers: [{ name: 'example', config: { transport: 'http', url: 'https://mcp.example.com/mcp' } }],
    })
    expect(recognise('http://localhost:9/sse').servers[0]?.config.transport).toBe('sse')
  })

  it('is nothing yet', () => {
    for (const text of ['', '{', '{"a": 1}', '[]', 'hello', '{"mcpServers": {}}', 'docker run -i']) {
      expect(recognise(text).kind, text).toBe('nothing')
    }
  })
})

it('splits a command line as a shell does, and expands nothing', () => {
  expect(words(`a 'b c' "d \\"e\\"" f\\ g $HOME \\\n h ''`)).toEqual(['a', 'b c', 'd "e"', 'f g', '$HOME', 'h', ''])
})

it('makes names that the server takes', () => {
  expect(nameFrom('Größe & mehr!')).toBe('Gr-e-mehr')
  expect(nameFrom('***')).toBe('server')
  expect(nameFrom('x'.repeat(99))).toHaveLength(64)
})

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

  it('says so of whatever was pasted', () => {
    const of = (text: string) => recognise(text).servers.map(({ config }) => installer(config))
    expect(of('npx -y some-server')).toEqual(['npx'])
    expect(of('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')).toEqual(['uvx'])
    expect(of('docker run -i --rm node npx some-server')).toEqual(['npx'])
    expect(of('https://mcp.example.com/npx')).toEqual([null])
  })
})
