/**
 * The highlighter itself, with its languages. Only the worker loads this.
 * It writes no HTML: its emitter is replaced by one that notes lengths and kinds.
 */
import hljs from 'highlight.js/lib/core'
import type { Emitter, LanguageFn } from 'highlight.js'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cmake from 'highlight.js/lib/languages/cmake'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import dart from 'highlight.js/lib/languages/dart'
import diff from 'highlight.js/lib/languages/diff'
import dockerfile from 'highlight.js/lib/languages/dockerfile'
import elixir from 'highlight.js/lib/languages/elixir'
import go from 'highlight.js/lib/languages/go'
import graphql from 'highlight.js/lib/languages/graphql'
import haskell from 'highlight.js/lib/languages/haskell'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import kotlin from 'highlight.js/lib/languages/kotlin'
import lua from 'highlight.js/lib/languages/lua'
import makefile from 'highlight.js/lib/languages/makefile'
import markdown from 'highlight.js/lib/languages/markdown'
import nginx from 'highlight.js/lib/languages/nginx'
import perl from 'highlight.js/lib/languages/perl'
import php from 'highlight.js/lib/languages/php'
import powershell from 'highlight.js/lib/languages/powershell'
import protobuf from 'highlight.js/lib/languages/protobuf'
import python from 'highlight.js/lib/languages/python'
import pythonRepl from 'highlight.js/lib/languages/python-repl'
import r from 'highlight.js/lib/languages/r'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import scala from 'highlight.js/lib/languages/scala'
import scss from 'highlight.js/lib/languages/scss'
import shell from 'highlight.js/lib/languages/shell'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { KINDS, MAX_HIGHLIGHTED, type Kind, type Request, type Runs } from './kinds'

const LANGUAGES: Record<string, LanguageFn> = {
  bash, c, cmake, cpp, csharp, css, dart, diff, dockerfile, elixir, go, graphql, haskell, ini, java, javascript, json,
  kotlin, lua, makefile, markdown, nginx, perl, php, powershell, protobuf, python, 'python-repl': pythonRepl, r, ruby,
  rust, scala, scss, shell, sql, swift, typescript, xml, yaml,
}

/** Names that models use and the highlighter does not know. */
const ALIASES: Record<string, string[]> = {
  ini: ['conf', 'env', 'dotenv'],
  xml: ['vue', 'svelte'],
}

/** The first part of a scope (`title` of `title.function`) to its look; scopes that are missing look like what is around them. */
const LOOKS = new Map<string, Kind>([
  ['comment', 'aside'], ['quote', 'aside'], ['meta', 'aside'], ['doctag', 'aside'],
  ['keyword', 'keyword'], ['literal', 'keyword'], ['name', 'keyword'], ['selector-tag', 'keyword'], ['section', 'keyword'],
  ['template-tag', 'keyword'],
  ['string', 'string'], ['regexp', 'string'], ['char', 'string'], ['link', 'string'], ['code', 'string'],
  ['number', 'number'], ['symbol', 'number'], ['bullet', 'number'],
  ['title', 'name'], ['type', 'name'], ['built_in', 'name'], ['attr', 'name'], ['attribute', 'name'], ['variable', 'name'],
  ['template-variable', 'name'], ['selector-id', 'name'], ['selector-class', 'name'], ['selector-attr', 'name'],
  ['selector-pseudo', 'name'],
  ['addition', 'added'], ['deletion', 'removed'],
  // Code inside of a string.
  ['subst', 'plain'],
])

/** Takes what the highlighter finds. White space has no look, so it joins what stands before it. */
class RunEmitter implements Emitter {
  readonly runs: Runs = []
  private readonly open: number[] = []

  startScope(scope: string): void {
    const look = LOOKS.get(scope.split('.', 1)[0] ?? '')
    this.open.push(look === undefined ? this.around() : KINDS.indexOf(look))
  }

  endScope(): void {
    this.open.pop()
  }

  /** The highlighter's own emitter has these two besides, its core calls them, and its types do not say so. */
  openNode(scope: string): void {
    this.startScope(scope)
  }

  closeNode(): void {
    this.endScope()
  }

  addText(text: string): void {
    if (text !== '') this.add(text.length, text.trim() === '' ? (this.runs.at(-1) ?? 0) : this.around())
  }

  __addSublanguage(inner: Emitter): void {
    if (!(inner instanceof RunEmitter)) return
    for (let at = 0; at < inner.runs.length; at += 2) this.add(inner.runs[at] ?? 0, inner.runs[at + 1] || this.around())
  }

  toHTML(): string {
    return ''
  }

  finalize(): void {
    this.open.length = 0
  }

  private around(): number {
    return this.open.at(-1) ?? 0
  }

  private add(length: number, kind: number): void {
    const end = this.runs.length
    if (end > 0 && this.runs[end - 1] === kind) this.runs[end - 2] = (this.runs[end - 2] ?? 0) + length
    else this.runs.push(length, kind)
  }
}

const highlighter = hljs.newInstance()
highlighter.configure({ __emitter: RunEmitter })
for (const [name, language] of Object.entries(LANGUAGES)) highlighter.registerLanguage(name, language)
for (const [languageName, names] of Object.entries(ALIASES)) highlighter.registerAliases(names, { languageName })

/** Null for an unknown language. May take long with hostile text, so a caller needs a way to stop it. */
export function runsOf({ source, language }: Request): Runs | null {
  if (source.length > MAX_HIGHLIGHTED || highlighter.getLanguage(language) === undefined) return null
  const result = highlighter.highlight(source, { language, ignoreIllegals: true })
  return result._emitter instanceof RunEmitter && result.errorRaised === undefined ? result._emitter.runs : null
}
