import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runsOf } from './grammars'
import { Highlighter, MAX_MS } from './highlighter'
import { cut, isWorthAsking, languageOf, MAX_HIGHLIGHTED, MAX_PIECES, type Kind, type Piece, type Runs } from './kinds'
import { WorkerStandIn } from './testing'

const RUST = { source: 'fn a() {}', language: 'rust' }
const PYTHON = { source: 'return 1', language: 'python' }
const SHELL = { source: 'if true; then :; fi', language: 'bash' }

function setUp(): { highlighter: Highlighter; workers: WorkerStandIn[] } {
  const workers: WorkerStandIn[] = []
  const highlighter = new Highlighter(() => {
    const worker = new WorkerStandIn()
    workers.push(worker)
    return worker.asWorker()
  })
  return { highlighter, workers }
}

function textOf(pieces: Piece[] | null | undefined): string | undefined {
  return pieces?.map(({ text }) => text).join('')
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('the highlighter', () => {
  it('loads its worker for the first block that is worth it', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    highlighter.ask({ source: 'a', language: 'text' }, settle)
    highlighter.ask({ source: 'a'.repeat(MAX_HIGHLIGHTED + 1), language: 'js' }, settle)
    expect(settle.mock.calls).toEqual([[null], [null]])
    expect(workers).toHaveLength(0)
    highlighter.ask(RUST, settle)
    highlighter.ask(PYTHON, settle)
    expect(workers).toHaveLength(1)
  })

  it('works on one block at a time, in order', () => {
    const { highlighter, workers } = setUp()
    const settled: (string | undefined)[] = []
    for (const request of [RUST, PYTHON]) highlighter.ask(request, (pieces) => settled.push(textOf(pieces)))
    expect(workers[0]?.asked).toEqual([])
    workers[0]?.say('ready')
    expect(workers[0]?.asked).toEqual([RUST])
    workers[0]?.answer()
    expect(workers[0]?.asked).toEqual([RUST, PYTHON])
    workers[0]?.answer()
    expect(settled).toEqual([RUST.source, PYTHON.source])
  })

  it('answers at once for what it has worked out before', () => {
    const { highlighter, workers } = setUp()
    highlighter.ask(RUST, () => {})
    workers[0]?.say('ready')
    workers[0]?.answer()
    const settle = vi.fn()
    highlighter.ask({ ...RUST }, settle)
    expect(textOf(settle.mock.calls[0]?.[0])).toBe(RUST.source)
    expect(workers[0]?.asked).toHaveLength(1)
    // The same text in another language is another question.
    highlighter.ask({ ...RUST, language: 'python' }, settle)
    expect(workers[0]?.asked).toHaveLength(2)
  })

  it('remembers no more than its share', () => {
    const { highlighter, workers } = setUp()
    const long = Array.from({ length: 12 }, (_, at) => ({ source: `// ${at} ${'x'.repeat(MAX_HIGHLIGHTED - 10)}`, language: 'rust' }))
    highlighter.ask(RUST, () => {})
    workers[0]?.say('ready')
    workers[0]?.answer()
    for (const request of long) {
      highlighter.ask(request, () => {})
      workers[0]?.answer()
    }
    const before = workers[0]?.asked.length ?? 0
    highlighter.ask(long[11] ?? RUST, () => {})
    expect(workers[0]?.asked).toHaveLength(before)
    highlighter.ask(RUST, () => {})
    expect(workers[0]?.asked).toHaveLength(before + 1)
  })

  it('says nothing to one that took its question back', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    const takeBacks = [RUST, PYTHON].map((request) => highlighter.ask(request, settle))
    workers[0]?.say('ready')
    for (const takeBack of takeBacks) takeBack()
    workers[0]?.answer()
    expect(workers[0]?.asked).toEqual([RUST])
    expect(settle).not.toHaveBeenCalled()
  })

  it('stops a block without end, and goes on with the next in a new worker', () => {
    const { highlighter, workers } = setUp()
    const first = vi.fn()
    const second = vi.fn()
    highlighter.ask(RUST, first)
    highlighter.ask(PYTHON, second)
    // Loading may take as long as the network does.
    vi.advanceTimersByTime(10 * MAX_MS)
    expect(first).not.toHaveBeenCalled()
    workers[0]?.say('ready')
    vi.advanceTimersByTime(MAX_MS)
    expect(first).toHaveBeenCalledExactlyOnceWith(null)
    expect(workers[0]?.isTerminated).toBe(true)
    workers[1]?.say('ready')
    // Too late: what a stopped worker still says is nobody's answer.
    workers[0]?.say({ runs: [8, 1] })
    expect(second).not.toHaveBeenCalled()
    workers[1]?.answer()
    expect(textOf(second.mock.calls[0]?.[0])).toBe(PYTHON.source)
    vi.advanceTimersByTime(10 * MAX_MS)
    expect(workers[1]?.isTerminated).toBe(false)
  })

  it('gives up after the third failure', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    for (const request of [RUST, PYTHON, SHELL, { ...RUST, language: 'c' }]) highlighter.ask(request, settle)
    for (const at of [0, 1, 2]) {
      workers[at]?.say('ready')
      vi.advanceTimersByTime(MAX_MS)
    }
    expect(settle.mock.calls).toEqual([[null], [null], [null], [null]])
    highlighter.ask({ ...RUST, language: 'go' }, settle)
    expect(settle).toHaveBeenCalledTimes(5)
    expect(workers).toHaveLength(3)
  })

  it('leaves all plain when the worker cannot be loaded, and tries again with a later block', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    highlighter.ask(RUST, settle)
    highlighter.ask(PYTHON, settle)
    workers[0]?.failToLoad()
    expect(settle.mock.calls).toEqual([[null], [null]])
    highlighter.ask(SHELL, settle)
    workers[1]?.say('ready')
    workers[1]?.answer()
    expect(textOf(settle.mock.calls[2]?.[0])).toBe(SHELL.source)
  })

  it('keeps the failure from the console', () => {
    const { highlighter, workers } = setUp()
    highlighter.ask(RUST, () => {})
    const event = new Event('error', { cancelable: true })
    workers[0]?.onerror?.(event)
    expect(event.defaultPrevented).toBe(true)
  })

  it('leaves code plain where there are no workers', () => {
    const highlighter = new Highlighter(() => {
      throw new ReferenceError('Worker is not defined')
    })
    const settle = vi.fn()
    for (let at = 0; at < 5; at++) highlighter.ask(RUST, settle)
    expect(settle.mock.calls).toEqual([[null], [null], [null], [null], [null]])
  })

  it('draws nothing that does not cover the text', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    highlighter.ask(RUST, settle)
    workers[0]?.say('ready')
    workers[0]?.say({ runs: [2, 2] })
    expect(settle).toHaveBeenCalledExactlyOnceWith(null)
  })
})

describe('grammars', () => {
  /** The kind and text of each piece that is not plain: what a reader sees in colour. */
  function coloured(language: string, source: string): [Kind, string][] {
    const pieces = cut(source, runsOf({ source, language }))
    return (pieces ?? []).filter(({ kind }) => kind !== 'plain').map(({ kind, text }) => [kind, text.trim()])
  }

  /** What models write behind a fence. */
  const NAMES = [
    'bash', 'sh', 'zsh', 'shell', 'console', 'c', 'h', 'cpp', 'c++', 'cs', 'csharp', 'css', 'scss', 'dart', 'diff', 'patch', 'dockerfile',
    'Dockerfile', 'docker', 'elixir', 'go', 'golang', 'graphql', 'haskell', 'hs', 'ini', 'toml', 'env', 'java', 'js', 'javascript', 'jsx',
    'mjs', 'json', 'jsonc', 'json5', 'kotlin', 'kt', 'lua', 'makefile', 'make', 'markdown', 'md', 'nginx', 'perl', 'php', 'powershell', 'ps1',
    'proto', 'protobuf', 'py', 'python', 'Python', 'pycon', 'r', 'rb', 'ruby', 'rs', 'rust', 'scala', 'sql', 'swift', 'ts', 'typescript', 'tsx',
    'html', 'xml', 'svg', 'vue', 'svelte', 'yaml', 'yml', 'cmake',
  ]

  /** One text with something of every language, so that no grammar has an easy time. */
  const EVERYTHING = [
    '#!/bin/sh', 'fn main() { let x = "a\\n${b}"; } // c', '<script>let a = `<b>${1 + 2}</b>`</script><style>a{b:c}</style>', '/* é 日本 🎉 */',
    'def f(x): return f"{x!r}" # "', '@@ -1 +1 @@', '-old', '+new', 'SELECT "a" FROM b WHERE c = \'d\';', '[section]', 'key = 1.5e3', '```js', 'x', '```',
    '\tall: $(X)', '$ ls -l', '>>> 1', '<?php echo $a; ?>', '<!-- x', "'unclosed", '',
  ].join('\n')

  describe('grammars', () => {
    it.each(NAMES)('know `%s`, and cover all of a text', (language) => {
      const pieces = cut(EVERYTHING, runsOf({ source: EVERYTHING, language }))
      expect(pieces?.map(({ text }) => text).join('')).toBe(EVERYTHING)
    })

    it('find what a reader looks for', () => {
      expect(coloured('rust', 'fn a() -> u8 { 1 } // b')).toEqual([
        ['keyword', 'fn'], ['name', 'a'], ['name', 'u8'], ['number', '1'], ['aside', '// b'],
      ])
      expect(coloured('python', 'return "x"')).toEqual([['keyword', 'return'], ['string', '"x"']])
      expect(coloured('diff', '-a\n+b\n c')).toEqual([['removed', '-a'], ['added', '+b']])
      expect(coloured('json', '{"a": true}')).toEqual([['name', '"a"'], ['keyword', 'true']])
    })

    it('leave code inside of a string as code', () => {
      expect(coloured('js', '`a${b}c`')).toEqual([['string', '`a'], ['string', 'c`']])
    })

    it('look into a language inside of another', () => {
      expect(coloured('html', '<script>const a = 1</script>')).toContainEqual(['keyword', 'const'])
    })

    it.each(['', 'nonsense', 'brainfuck', '__proto__', 'constructor', 'toString', '<script>'])('do not know `%s`', (language) => {
      expect(runsOf({ source: 'let a = 1', language })).toBeNull()
    })

    it('give numbers and nothing else, whatever the code holds', () => {
      const source = 'let a = "<img src=x onerror=alert(1)>" // </span><script>alert(1)</script>'
      const runs = runsOf({ source, language: 'js' })
      expect(runs?.length).toBeGreaterThan(2)
      expect(runs?.every((part) => Number.isInteger(part))).toBe(true)
    })
  })

  describe('a fence', () => {
    it.each([
      ['rust', 'rust'], ['rust,ignore', 'rust'], ['js {1,3}', 'js'], ['js{1,3}', 'js'], ['python title="a b"', 'python'], ['ts:src/a.ts', 'ts'],
      ['c++', 'c++'], ['', undefined], ['<script>alert(1)</script>', undefined], ['js"onload="alert(1)', undefined], ['x'.repeat(33), undefined],
    ])('`%s` names %s', (info, language) => {
      expect(languageOf(info)).toBe(language)
    })
  })

  describe('what is too much or nothing', () => {
    it('is not asked for', () => {
      expect(isWorthAsking({ source: 'a'.repeat(MAX_HIGHLIGHTED), language: 'js' })).toBe(true)
      expect(isWorthAsking({ source: 'a'.repeat(MAX_HIGHLIGHTED + 1), language: 'js' })).toBe(false)
      expect(isWorthAsking({ source: 'a', language: 'Text' })).toBe(false)
      expect(isWorthAsking({ source: '', language: 'js' })).toBe(false)
    })

    it.each([
      ['too short', [2, 1]], ['too long', [4, 1]], ['of an unknown kind', [3, 99]], ['of no kind', [3]], ['of a negative length', [4, 1, -1, 0]], ['no number', [Number.NaN, 1]],
    ])('is not drawn: runs that are %s', (_, runs) => {
      expect(cut('abc', runs)).toBeNull()
    })

    it('is not drawn: more pieces than a page can bear', () => {
      const ofPieces = (count: number): Runs => Array.from({ length: count }, (_, at) => [1, at % 2]).flat()
      expect(cut('a'.repeat(MAX_PIECES), ofPieces(MAX_PIECES))).toHaveLength(MAX_PIECES)
      expect(cut('a'.repeat(MAX_PIECES + 1), ofPieces(MAX_PIECES + 1))).toBeNull()
    })
  })
})
