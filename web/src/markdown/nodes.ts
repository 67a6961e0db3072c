/** Turns tokens into Vue nodes. Whatever is not named here is drawn as text, so this file is the allow-list. */
import { defineComponent, h, onMounted, shallowRef, type Component, type VNode, type VNodeArrayChildren } from 'vue'
import { t } from '@/locales'
import CodeBlock from './CodeBlock.vue'
import FootnoteMark from './FootnoteMark.vue'
import FootnoteText from './FootnoteText.vue'
import MathFormula from './MathFormula.vue'
import type { Token } from './parser'
import { isSafeTarget } from './targets'

/** Deeper formatting is dropped, its text is kept: neither we nor Vue may run out of stack. */
const MAX_DEPTH = 64

const PLAIN_TAGS = new Map([
  ['paragraph', 'p'],
  ['blockquote', 'blockquote'],
  ['bullet_list', 'ul'],
  ['list_item', 'li'],
  ['em', 'em'],
  ['strong', 'strong'],
  ['s', 's'],
  ['thead', 'thead'],
  ['tbody', 'tbody'],
  ['tr', 'tr'],
])
/** The language of a block of code that is drawn. */
const DIAGRAM = 'mermaid'
/** The page's own headings come first; those of the model start below them. */
const HEADINGS = new Map([
  ['h1', 'h3'],
  ['h2', 'h4'],
  ['h3', 'h5'],
])
const ALIGNMENTS = new Map([
  ['text-align:center', 'md-center'],
  ['text-align:right', 'md-end'],
  ['text-align:left', 'md-start'],
])

interface Frame {
  /** Null for formatting that is passed over. */
  token: Token | null
  children: VNodeArrayChildren
  text: string
}

/** `isFinished` says that nothing will be added to these; only then is code highlighted. */
export function renderTokens(tokens: Token[], isFinished: boolean): VNodeArrayChildren {
  const builder = new Builder(isFinished)
  builder.addAll(tokens)
  return builder.finish()
}

class Builder {
  private readonly stack: Frame[] = [{ token: null, children: [], text: '' }]
  private links = 0

  constructor(private readonly isFinished: boolean) {}

  addAll(tokens: Token[]): void {
    for (const token of tokens) this.add(token)
  }

  finish(): VNodeArrayChildren {
    while (this.stack.length > 1) this.close()
    return this.stack[0]?.children ?? []
  }

  private add(token: Token): void {
    if (token.type === 'inline') this.inline(token)
    else if (token.nesting === 1) this.open(token)
    else if (token.nesting === -1) this.close()
    else this.leaf(token)
  }

  private inline(token: Token): void {
    const task: unknown = token.meta?.task
    if (task !== 'open' && task !== 'done') return this.addAll(token.children ?? [])
    const words = new Builder(this.isFinished)
    words.links = this.links
    words.addAll(token.children ?? [])
    const box = h('input', { type: 'checkbox', disabled: true, checked: task === 'done' })
    this.push(h('label', { class: 'md-task' }, [box, ' ', h('span', words.finish())]), token.content)
  }

  private open(token: Token): void {
    const isPassedOver = token.hidden || this.stack.length > MAX_DEPTH
    if (token.type === 'link_open') this.links++
    this.stack.push({ token: isPassedOver ? null : token, children: [], text: '' })
    if (isPassedOver && token.type === 'link_open') this.links--
  }

  private close(): void {
    const frame = this.stack.pop()
    const parent = this.stack.at(-1)
    if (frame === undefined || parent === undefined) return
    parent.text += frame.text
    if (frame.token?.type === 'link_open') this.links--
    if (frame.token === null) parent.children.push(...frame.children)
    else parent.children.push(element(frame.token, frame, this.stack.length === 1))
  }

  private leaf(token: Token): void {
    switch (token.type) {
      case 'softbreak':
        return this.push('\n', '\n')
      case 'hardbreak':
        return this.push(h('br'), '\n')
      case 'hr':
        return this.push(h('hr'), '')
      case 'code_inline':
        return this.push(h('code', token.content), token.content)
      case 'fence':
      case 'code_block':
        return this.push(this.code(token), token.content)
      case 'image':
        return this.push(image(token, this.links > 0), token.content)
      case 'math_inline':
        return this.push(h(MathFormula, { tex: token.content, source: token.info, isBlock: isDisplayed(token) }), token.info)
      case 'math_block':
        return this.push(token.content === '' ? h('p', token.info) : h(MathFormula, { tex: token.content, source: token.info, isBlock: true }), token.info)
      case 'footnote_mark':
        return this.push(h(FootnoteMark, { label: token.content }), `[^${token.content}]`)
      default:
        return this.push(token.content, token.content)
    }
  }

  private code(token: Token): VNode {
    const source = token.content.replace(/\n$/, '')
    const info = token.info.trim()
    const block = h(CodeBlock, { source, info, isWhole: this.isFinished })
    return info === DIAGRAM ? h(LazyDiagram, { source, isWhole: this.isFinished }, { default: () => block }) : block
  }

  private push(child: VNode | string, text: string): void {
    const frame = this.stack.at(-1)
    frame?.children.push(child)
    if (frame !== undefined) frame.text += text
  }
}

/** An outermost block is written in the direction of its first letter; what is inside it is drawn to its side. */
function element(token: Token, frame: Frame, isOutermost: boolean): VNode | VNodeArrayChildren {
  const name = token.type.replace(/_open$/, '')
  const direction = isOutermost && token.block ? { dir: 'auto' } : {}
  const plain = PLAIN_TAGS.get(name)
  if (plain !== undefined) return h(plain, direction, frame.children)
  switch (name) {
    case 'heading':
      return h(HEADINGS.get(token.tag) ?? 'h6', direction, frame.children)
    case 'ordered_list':
      return h('ol', { ...startOf(token), ...direction }, frame.children)
    case 'table':
      return h('div', { class: 'md-table', tabindex: 0, role: 'group', 'aria-label': t('markdown.table'), ...direction }, [h('table', frame.children)])
    case 'th':
    case 'td':
      return h(name, alignmentOf(token), frame.children)
    case 'link':
      return link(token, frame)
    case 'footnote':
      return h(FootnoteText, { label: token.content }, { default: () => frame.children })
    default:
      return frame.children
  }
}

/** A formula with a line of its own, which may also stand within a sentence. */
function isDisplayed(token: Token): boolean {
  return token.markup !== '$' && token.markup !== '\\('
}

function attribute(token: Token, name: string): string {
  return String(token.attrGet(name) ?? '')
}

function startOf(token: Token): Record<string, number> {
  const start = Number(token.attrGet('start') ?? 1)
  return Number.isSafeInteger(start) && start !== 1 ? { start } : {}
}

function alignmentOf(token: Token): Record<string, string> {
  const alignment = ALIGNMENTS.get(attribute(token, 'style'))
  return alignment === undefined ? {} : { class: alignment }
}

function link(token: Token, frame: Frame): VNode | VNodeArrayChildren {
  const href = attribute(token, 'href')
  if (!isSafeTarget(href)) return frame.children
  const title = attribute(token, 'title')
  const notes = [saysItsHost(frame.text, href) ? '' : hostOf(href), title].filter((note) => note !== '')
  return h('a', { class: 'md-link', href, rel: 'noopener noreferrer', target: '_blank' }, [
    ...frame.children,
    ...notes.map((note) => h('span', { class: 'md-note' }, ` (${note})`)),
  ])
}

/** Remote images are never fetched; a row says where the image would come from. */
function image(token: Token, isInLink: boolean): VNode | string {
  const source = attribute(token, 'src')
  if (!isSafeTarget(source) || !/^https?:/i.test(source)) return `![${token.content}](${source})`
  return h('span', { class: 'md-image' }, [
    h('span', { class: 'md-note' }, t('markdown.imageFrom', { host: hostOf(source) })),
    token.content === '' ? null : h('span', { class: 'md-alt' }, token.content),
    isInLink ? null : h('a', { class: 'md-note', href: source, rel: 'noopener noreferrer', target: '_blank' }, t('markdown.openInNewTab')),
  ])
}

/** In the form that the network uses: other scripts appear as punycode. */
function hostOf(target: string): string {
  const url = new URL(target)
  return url.protocol === 'mailto:' ? url.pathname : url.host
}

function saysItsHost(text: string, href: string): boolean {
  const url = new URL(href)
  if (url.protocol === 'mailto:') return text === url.pathname || text === `mailto:${url.pathname}`
  const shown = text.replace(/^https?:\/\//i, '')
  return shown === url.host || ['/', '?', '#'].some((next) => shown.startsWith(`${url.host}${next}`))
}

/** The component of diagrams, once it is loaded. */
const diagram = shallowRef<Component | null>(null)

/** A diagram, whose program is loaded with the first one; its source until then. */
const LazyDiagram = defineComponent({
  props: { source: { type: String, required: true }, isWhole: { type: Boolean, required: true } },
  setup(props, { slots }) {
    onMounted(async () => {
      diagram.value ??= await import('./DiagramBlock.vue').then(
        (module) => module.default,
        () => null,
      )
    })
    return () => (diagram.value === null ? slots.default?.() : h(diagram.value, { ...props }, slots))
  },
})
