import { describe, expect, it } from 'vitest'
import { runsOf } from './grammars'
import { cut, isWorthAsking, languageOf, MAX_HIGHLIGHTED, MAX_PIECES, type Kind, type Runs } from './kinds'

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
