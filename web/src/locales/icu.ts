/**
 * The part of ICU MessageFormat that our texts use: arguments, `plural`, `select` and `number`.
 * Written out because the usual library weighs more than the sign-in screen's own code.
 */

import { perLocale } from './perLocale'

export type Values = (name: string) => unknown
export type Format = (values: Values) => string

type Branches = Record<string, Format>

/** These are dear to make, and most messages need none. */
const pluralOf = perLocale((locale) => new Intl.PluralRules(locale))
const numberOf = perLocale((locale) => new Intl.NumberFormat(locale))

/** An apostrophe quotes only a brace or another apostrophe, so that "it's" stays as it is. */
const QUOTABLE = /['{}#]/

export function compile(message: string, locale: string): Format {
  const parser = new Parser(message, locale)
  const format = parser.sequence(null)
  parser.expectEnd()
  return format
}

class Parser {
  private at = 0

  constructor(
    private readonly source: string,
    private readonly locale: string,
  ) {}

  /** Reads up to the closing brace or the end; `counted` is the argument that `#` stands for. */
  sequence(counted: string | null): Format {
    const parts: Format[] = []
    let text = ''
    const flush = () => {
      if (text) parts.push(constant(text))
      text = ''
    }
    for (;;) {
      const char = this.source[this.at]
      if (char === undefined || char === '}') break
      this.at++
      const next = this.source[this.at]
      if (char === "'" && next !== undefined && QUOTABLE.test(next)) {
        text += this.quoted()
      } else if (char === '{') {
        flush()
        parts.push(this.argument())
      } else if (char === '#' && counted !== null) {
        flush()
        parts.push((values) => numberOf(this.locale).format(Number(values(counted))))
      } else {
        text += char
      }
    }
    flush()
    return (values) => parts.map((part) => part(values)).join('')
  }

  /** The apostrophe was read: a second one stands for itself, a brace begins a span up to the next. */
  private quoted(): string {
    const end = this.source.indexOf("'", this.at)
    const span = end < 0 ? this.source.slice(this.at) : this.source.slice(this.at, end)
    this.at += span.length + 1
    return span || "'"
  }

  expectEnd(): void {
    if (this.at < this.source.length) this.fail('a closing brace without an opening one')
  }

  private argument(): Format {
    const name = this.word()
    if (this.take('}')) return (values) => String(values(name) ?? '')
    this.expect(',')
    const kind = this.word()
    if (kind === 'number') {
      this.expect('}')
      return (values) => numberOf(this.locale).format(Number(values(name)))
    }
    this.expect(',')
    if (kind === 'plural') return this.choose(name, this.branches(name), (value) => this.pluralKeys(value))
    if (kind === 'select') return this.choose(name, this.branches(null), (value) => [String(value)])
    return this.fail(`the unknown argument type \`${kind}\``)
  }

  private branches(counted: string | null): Branches {
    const branches: Branches = {}
    while (!this.take('}')) {
      const key = this.word()
      this.expect('{')
      branches[key] = this.sequence(counted)
      this.expect('}')
    }
    return branches
  }

  private choose(name: string, branches: Branches, keys: (value: unknown) => string[]): Format {
    const other = branches['other']
    if (!other) return this.fail('a choice without `other`')
    return (values) => {
      const key = keys(values(name)).find((candidate) => branches[candidate])
      return ((key !== undefined && branches[key]) || other)(values)
    }
  }

  private pluralKeys(value: unknown): string[] {
    const count = Number(value)
    return [`=${count}`, pluralOf(this.locale).select(count)]
  }

  private word(): string {
    const match = /^\s*([^\s{},]+)\s*/.exec(this.source.slice(this.at))
    if (!match?.[1]) return this.fail('a missing name')
    this.at += match[0].length
    return match[1]
  }

  private take(char: string): boolean {
    while (this.source[this.at] === ' ') this.at++
    if (this.source[this.at] !== char) return false
    this.at++
    return true
  }

  private expect(char: string): void {
    if (!this.take(char)) this.fail(`no \`${char}\``)
  }

  private fail(what: string): never {
    throw new Error(`message \`${this.source}\` has ${what} at ${this.at}`)
  }
}

function constant(text: string): Format {
  return () => text
}
