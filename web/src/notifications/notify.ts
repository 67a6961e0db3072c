/**
 * Notifications of the system for what begins to wait: the session's title and the tool's name, nothing that could be
 * approved by its look. One for each batch, by one tab, and only while nobody looks at any.
 */
import type { Router } from 'vue-router'
import { t } from '@/locales'
import { useWaiting } from '@/stores/waiting'
import { visibleText } from '@/text/hiddenCharacters'
import { address } from '@/wire/base'
import { rest } from '@/wire/rest'
import type { SessionItem, WaitingItem } from '@/wire/restTypes'
import { SeenCalls, type NewBatch } from './batches'
import { noteRefused } from './setting'
import { isAnySeen, sayWhenSeen, standInLine } from './tabs'

/** Gives what ends it. */
export function startNotifying(router: Router): () => void {
  const waiting = useWaiting()
  const seen = new SeenCalls()
  let isFirst = false
  /** What waited before this page listened is no news to anybody. */
  let isRead = false
  let last: Promise<void> = readAll()

  /** One after the other, so that no call is told twice. */
  function next(read: () => Promise<void>): void {
    last = last.then(read).catch(() => {})
  }

  async function readAll(): Promise<void> {
    let cursor: string | null = null
    do {
      const page: { items: WaitingItem[]; nextCursor?: string | null } = await rest.approvals(cursor)
      for (const item of page.items) await look(item, isAnySeen())
      cursor = page.nextCursor ?? null
    } while (cursor !== null)
    isRead = true
  }

  async function readOne(item: Pick<SessionItem, 'id' | 'waiting'>, wasSeen: Promise<boolean>): Promise<void> {
    if (item.waiting === 0) return seen.forget(item.id)
    const { items } = await rest.approvals(null, item.id)
    for (const found of items) await look(found, wasSeen)
  }

  async function look(item: WaitingItem, wasSeen: Promise<boolean>): Promise<void> {
    const batch = seen.take(item)
    if (batch === null || !isRead || !isFirst || (await wasSeen)) return
    tell(batch, item.owner !== undefined)
  }

  function tell({ sessionId, title, tool, calls, tag }: NewBatch, isOthers: boolean): void {
    const name = visibleText(tool, { oneLine: true })
    try {
      const shown = new Notification(visibleText(title ?? t('session.untitled'), { oneLine: true }), {
        body: t('notifications.body', { tool: name, more: calls - 1 }),
        tag,
        icon: address('icon-waiting.svg'),
      })
      shown.onclick = () => {
        shown.close()
        window.focus()
        void router.push(isOthers || waiting.sessions > 1 ? '/approvals' : `/s/${sessionId}`)
      }
    } catch {
      noteRefused()
    }
  }

  last = last.catch(() => {})
  const ends = [
    standInLine(() => (isFirst = true)),
    sayWhenSeen(),
    waiting.listen({
      changed: (item) => {
        // Asked when the call begins to wait: the person may look away while it is read.
        const wasSeen = isAnySeen()
        next(() => readOne(item, wasSeen))
      },
      removed: (id) => next(() => Promise.resolve(seen.forget(id))),
      stale: () => next(readAll),
    }),
  ]
  return () => {
    for (const end of ends) end()
  }
}
