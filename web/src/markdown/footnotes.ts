/**
 * The footnotes of one text. Marks and notes find each other here and not by ids, so that those of two answers
 * cannot be mixed up, and a model names nothing in the page.
 */
import { inject, provide, type InjectionKey, type Ref } from 'vue'

export class Footnotes {
  private readonly notes = new Map<string, HTMLElement>()
  private readonly marks = new Map<string, HTMLElement>()

  /** `labels` = those that have a note. */
  constructor(private readonly labels: Ref<readonly string[]>) {}

  has(label: string): boolean {
    return this.labels.value.includes(label)
  }

  /** The first note of a label is the one that is meant. */
  addNote(label: string, element: HTMLElement): void {
    if (!this.notes.get(label)?.isConnected) this.notes.set(label, element)
  }

  addMark(label: string, element: HTMLElement): void {
    if (!this.marks.get(label)?.isConnected) this.marks.set(label, element)
  }

  toNote(label: string, from: HTMLElement): void {
    this.marks.set(label, from)
    show(this.notes.get(label))
  }

  toMark(label: string): void {
    show(this.marks.get(label))
  }
}

const KEY: InjectionKey<Footnotes> = Symbol('footnotes')

export function provideFootnotes(labels: Ref<readonly string[]>): void {
  provide(KEY, new Footnotes(labels))
}

/** Null outside of a text. */
export function useFootnotes(): Footnotes | null {
  return inject(KEY, null)
}

function show(element: HTMLElement | undefined): void {
  element?.scrollIntoView({ block: 'nearest' })
  element?.focus({ preventScroll: true })
}
