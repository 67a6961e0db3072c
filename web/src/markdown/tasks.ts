/** Items of lists that begin with `[ ]` or `[x]`: the box is drawn, and nothing can be ticked. */
import type { MarkdownIt } from 'markdown-it'

const BOX = /^\[([ xX])\](?=\s)/

export function addTasks(md: MarkdownIt): void {
  md.core.ruler.after('bound_inline', 'tasks', (state) => {
    for (const [index, token] of state.tokens.entries()) {
      const isFirst = state.tokens[index - 1]?.type === 'paragraph_open' && state.tokens[index - 2]?.type === 'list_item_open'
      const box = isFirst && token.type === 'inline' ? BOX.exec(token.content)?.[1] : undefined
      if (box === undefined) continue
      token.content = token.content.slice(3).trimStart()
      token.meta = { task: box === ' ' ? 'open' : 'done' }
    }
  })
}
