/** What of a scrolled text is not in view yet, counted exactly: nobody approves what a window's edge has cut. */
import { onBeforeUnmount, onMounted, ref, type Ref } from 'vue'
import { characterCount, lineCount } from '@/text/foldMiddle'

export interface Unseen {
  /** Lines of the text itself, however they are wrapped, of which something is below the edge. */
  lines: number
  /** When it is the rest of one line only: its characters, counted as people do. */
  characters: number | null
}

/** At the very end the last line may stand a fraction of a pixel below the edge. */
const TOLERANCE_PX = 1
const RANGE_CHARACTERS = 64

/** Reads the parts that say how they count: `data-lines`, or `data-unit` around text that may be folded. */
export function unseenBelow(scroller: HTMLElement): Unseen {
  const edge = scroller.getBoundingClientRect().bottom + TOLERANCE_PX
  const unseen: Unseen = { lines: 0, characters: null }
  for (const part of scroller.querySelectorAll<HTMLElement>('[data-lines], [data-unit]')) {
    if (part.getBoundingClientRect().bottom <= edge) continue
    if (part.dataset.lines !== undefined) unseen.lines += Number(part.dataset.lines)
    else addRest(unseen, part, edge)
  }
  return unseen.lines === 1 ? unseen : { ...unseen, characters: null }
}

function addRest(unseen: Unseen, unit: HTMLElement, edge: number): void {
  const parts = partsOf(unit)
  const first = parts.findIndex((part) => bottomOf(part) > edge)
  const begin = parts[first]
  if (begin === undefined) return
  const from = begin instanceof Text ? firstBelow(begin, edge) : 0
  const rest = [countOf(begin, from), ...parts.slice(first + 1).map((part) => countOf(part))]
  const above = from > 0 ? countOf(begin, from - 1, from) : first > 0 ? countOf(parts[first - 1] as Part) : null
  unseen.lines += sum(rest.map(({ breaks }) => breaks)) + (rest.at(-1)?.endsLine === true ? 0 : 1)
  if (above !== null && !above.endsLine) unseen.characters = sum(rest.map(({ characters }) => characters))
}

function sum(numbers: number[]): number {
  return numbers.reduce((left, right) => left + right, 0)
}

type Part = Text | HTMLElement

/** Text as it is drawn, and what stands for text: escapes, and the buttons of folds. */
function partsOf(unit: HTMLElement): Part[] {
  const walker = document.createTreeWalker(unit, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) => {
    if (node instanceof HTMLElement) return isStandIn(node) ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP
    const parent = node.parentElement
    const isDrawn = node.textContent !== '' && parent?.closest('pre') && !parent.classList.contains('visible-escape')
    return isDrawn ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP
  })
  const parts: Part[] = []
  while (walker.nextNode() !== null) parts.push(walker.currentNode as Part)
  return parts
}

function isStandIn(element: HTMLElement): boolean {
  return element.classList.contains('visible-escape') || element.dataset.breaks !== undefined
}

function bottomOf(part: Part): number {
  return part instanceof HTMLElement ? part.getBoundingClientRect().bottom : bottomAt(part, part.data.length)
}

/** Where the text before an offset ends. A few characters do: to lay out a range takes as long as the range is. */
function bottomAt(text: Text, offset: number): number {
  const range = document.createRange()
  range.setStart(text, Math.max(0, offset - RANGE_CHARACTERS))
  range.setEnd(text, offset)
  return range.getBoundingClientRect().bottom
}

interface Count {
  breaks: number
  characters: number
  endsLine: boolean
}

function countOf(part: Part, from = 0, to?: number): Count {
  if (part instanceof HTMLElement) {
    const { breaks, characters, standsFor } = part.dataset
    return { breaks: Number(breaks ?? 0), characters: Number(characters ?? standsFor ?? 1), endsLine: false }
  }
  const text = part.data.slice(from, to)
  return { breaks: lineCount(text) - 1, characters: characterCount(text), endsLine: text.endsWith('\n') }
}

/** The first character that ends below the edge; lines follow each other downwards, so halving finds it. */
function firstBelow(text: Text, edge: number): number {
  let low = 0
  let high = text.data.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (bottomAt(text, middle + 1) > edge) high = middle
    else low = middle + 1
  }
  return low
}

/** Null while all of it is in view without scrolling. */
export function useUnseen(scroller: Ref<HTMLElement | undefined>): Ref<Unseen | null> {
  const unseen = ref<Unseen | null>(null)
  const observers: { disconnect(): void }[] = []
  let frame = 0

  function look(): void {
    frame = 0
    const element = scroller.value
    const overflows = element !== undefined && element.scrollHeight > element.clientHeight + 1
    unseen.value = overflows ? unseenBelow(element) : null
  }

  function lookSoon(): void {
    frame ||= requestAnimationFrame(look)
  }

  onMounted(() => {
    const element = scroller.value
    if (element === undefined) return
    element.addEventListener('scroll', lookSoon, { passive: true })
    const mutations = new MutationObserver(lookSoon)
    mutations.observe(element, { childList: true, subtree: true, characterData: true })
    const sizes = new ResizeObserver(lookSoon)
    sizes.observe(element)
    observers.push(mutations, sizes)
    look()
  })
  onBeforeUnmount(() => {
    cancelAnimationFrame(frame)
    for (const observer of observers) observer.disconnect()
  })
  return unseen
}
