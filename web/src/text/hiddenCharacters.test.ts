import { describe, expect, it } from 'vitest'
import { hasHidden, visible, visibleHost, visibleText } from './hiddenCharacters'

function check(input: string, expected: string): void {
  expect(visibleText(input)).toBe(expected)
  expect(hasHidden(input)).toBe(input !== expected)
}

describe('visible', () => {
  it('leaves plain text of any script as it is', () => {
    check('', '')
    check('echo "hi" > a.txt\n\tnext line', 'echo "hi" > a.txt\n\tnext line')
    check('Grüße, 世界。 файл.txt שלום مرحبا', 'Grüße, 世界。 файл.txt שלום مرحبا')
    check('naïve résumé.txt 5 µs Δt', 'naïve résumé.txt 5 µs Δt')
    check('ok 👍🏽 ❤️ 👩‍💻 1️⃣ 🇩🇪', 'ok 👍🏽 ❤️ 👩‍💻 1️⃣ 🇩🇪')
  })

  it.each([
    ['a\u202Etxt.exe', 'a⟦U+202E⟧txt.exe', 'right-to-left override'],
    ['a\u2066b\u2069', 'a⟦U+2066⟧b⟦U+2069⟧', 'isolates'],
    ['a\u200Bb', 'a⟦U+200B⟧b', 'zero width space'],
    ['a\u200Db', 'a⟦U+200D⟧b', 'joiner outside a pictograph'],
    ['\uFEFFa', '⟦U+FEFF⟧a', 'byte order mark'],
    ['a\u0000b', 'a⟦U+0000⟧b', 'null'],
    ['a\u001b[31mb', 'a⟦U+001B⟧[31mb', 'terminal escape'],
    ['a\rb', 'a⟦U+000D⟧b', 'carriage return'],
    ['a\u007fb', 'a⟦U+007F⟧b', 'delete'],
    ['a\u0085b', 'a⟦U+0085⟧b', 'next line'],
    ['a\u00A0b', 'a⟦U+00A0⟧b', 'no-break space'],
    ['a\u3000b', 'a⟦U+3000⟧b', 'wide space'],
    ['a\u2028b', 'a⟦U+2028⟧b', 'line separator'],
    ['a\u00ADb', 'a⟦U+00AD⟧b', 'soft hyphen'],
    ['a\u3164b', 'a⟦U+3164⟧b', 'Hangul filler'],
    ['a\u2800b', 'a⟦U+2800⟧b', 'blank Braille'],
    ['a\u034Fb', 'a⟦U+034F⟧b', 'grapheme joiner'],
    ['a\uFE0Fb', 'a⟦U+FE0F⟧b', 'selector on a letter'],
    ['a\u{E0041}b', 'a⟦U+E0041⟧b', 'tag characters'],
    ['a\uE000b', 'a⟦U+E000⟧b', 'private use'],
    ['a\u0378b', 'a⟦U+0378⟧b', 'unassigned'],
    ['a\uD800b', 'a⟦U+D800⟧b', 'half of a pair'],
    ['e\u0301', 'e\u0301', 'one accent is fine'],
    ['e\u0301\u0301\u0301\u0301\u0301', 'e\u0301\u0301\u0301\u0301⟦U+0301⟧', 'stacked accents'],
    ['⟦U+202E⟧', '⟦U+27E6⟧U+202E⟦U+27E7⟧', 'a forged escape'],
  ])('%j becomes %s', (input, expected) => check(input, expected))

  it.each([
    ['curl https://аррӏе.com/x', 'curl https://⟦xn--80ak6aa92e.com⟧/x', 'whole host in look-alikes'],
    ['https://user@bücher.example:8080/a', 'https://user@⟦xn--bcher-kva.example⟧:8080/a', 'port and user stay'],
    ['https://pay\u200Bpal.com', 'https://pay⟦U+200B⟧pal.com', 'zero width in a host'],
    ['https://ｇoogle.com/', 'https://⟦U+FF47⟧oogle.com/', 'a mapped letter is not hidden by the mapping'],
    ['https://a。com/', 'https://a⟦U+3002⟧com/', 'another dot'],
    ['https://github.com\u2215evil.example/', 'https://⟦xn--github-xn3c.comevil.example⟧/', 'a slash that is none'],
    ['ssh git@раypal.com', 'ssh git@⟦U+0440⟧⟦U+0430⟧ypal.com', 'mixed scripts without a scheme'],
    ['ping аррӏе.com', 'ping ⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧⟦U+04CF⟧⟦U+0435⟧.com', 'host shape without a scheme'],
    ['rm /etc/pаsswd', 'rm /etc/p⟦U+0430⟧sswd', 'mixed scripts in a path'],
    ['a\u2044b', 'a⟦U+2044⟧b', 'fraction slash between letters'],
    ['echo 𝐫𝐦x', 'echo ⟦U+1D42B⟧⟦U+1D426⟧x', 'mathematical letters'],
  ])('%s becomes %s', (input, expected) => {
    // The exact punycode of the odd slash is the engine's; that it is no longer drawn as a slash is ours.
    if (input.includes('\u2215')) {
      expect(visibleText(input)).not.toContain('\u2215')
      expect(hasHidden(input)).toBe(true)
    } else {
      check(input, expected)
    }
  })

  it('escapes line breaks and tabs in one line', () => {
    expect(visibleText('a\nb\tc', { oneLine: true })).toBe('a⟦U+000A⟧b⟦U+0009⟧c')
  })

  it('shows a bare host in the form of the network', () => {
    expect(visibleHost('api.github.com')).toBe('api.github.com')
    expect(visibleHost('аррӏе.com')).toBe('⟦xn--80ak6aa92e.com⟧')
  })

  it('marks the pieces that were escaped', () => {
    expect(visible('a\u202Eb').pieces).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'escape', text: '⟦U+202E⟧' },
      { kind: 'text', text: 'b' },
    ])
  })

  it('never maps two different strings to the same drawing', () => {
    const inputs = ['a', 'а', 'a\u200B', 'a⟦U+200B⟧', 'ａ', 'a\u00A0', 'a ', 'paypal', 'pаypal', 'a\r\nb', 'a\nb']
    const drawn = inputs.map((input) => visibleText(input))
    expect(new Set(drawn).size).toBe(inputs.length)
  })

  it('reads a megabyte in a blink', () => {
    const started = performance.now()
    visible('plain text with some words\n'.repeat(40_000))
    visible('\u202Ea'.repeat(50_000))
    expect(performance.now() - started).toBeLessThan(3_000)
  })
})
