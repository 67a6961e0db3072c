/**
 * The Markdown parser, which comes beside the connection: a third of what a session weighs, and nothing of it is
 * needed before there are words to read.
 */
import { computed, shallowRef } from 'vue'
import type { Token } from './parser'

const loaded = shallowRef<(source: string) => Token[]>()
let loading: Promise<void> | null = null

/** Whether text can be drawn as Markdown. */
export const isMarkdownReady = computed(() => loaded.value !== undefined)

/** A parser that cannot be loaded is told by the strip, and asked for again by whoever needs it next. */
export function loadMarkdown(): Promise<void> {
  loading ??= import('./parser')
    .then((parser: typeof import('./parser') | undefined) => {
      loaded.value = parser?.parse
    })
    .catch(() => {})
    .finally(() => {
      loading = null
    })
  return loading
}

export function parse(source: string): Token[] {
  if (!loaded.value) throw new Error('text is drawn before its parser is there')
  return loaded.value(source)
}
