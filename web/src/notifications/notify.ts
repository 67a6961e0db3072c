/**
 * Notifications of the system for what begins to wait: the session's title and the tool's name, nothing that could be
 * approved by its look. One for each batch, by one tab, and only while nobody looks at any.
 */
import type { Router } from 'vue-router'
import { t } from '@/locales'
import { useWaiting } from '@/stores/waiting'
import { visibleText } from '@/text/hiddenCharacters'
import { address, basePath } from '@/wire/base'
import { rest } from '@/wire/rest'
import type { SessionItem, WaitingItem } from '@/wire/restTypes'
import { noteRefused } from './setting'
import './texts.en.json'

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
    const wasSeen = isAnySeen()
    let cursor: string | null = null
    do {
      const page: { items: WaitingItem[]; nextCursor?: string | null } = await rest.approvals(cursor)
      for (const item of page.items) await look(item, wasSeen)
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

// Finds the calls that nobody was told of yet; pure.

/** What a notification says: nothing that the model chose but the name of a tool. */
interface NewBatch {
  sessionId: string
  title: string | null
  /** Of the first call. */
  tool: string
  calls: number
  /** The same for every tab that tells of it. */
  tag: string
}

export class SeenCalls {
  private readonly seen = new Map<string, Set<string>>()

  /** What is new in a session, and from now on is not. */
  take({ sessionId, title, queue }: WaitingItem): NewBatch | null {
    const before = this.seen.get(sessionId) ?? new Set()
    const pending = queue.calls.filter(({ status, mayDecide }) => status === 'pending' && mayDecide)
    const fresh = pending.filter(({ callId }) => !before.has(callId))
    // All of the batch: a call that is taken back waits again, and is no news.
    this.seen.set(sessionId, new Set(queue.calls.map(({ callId }) => callId)))
    const first = fresh[0]
    if (first === undefined) return null
    return { sessionId, title: title ?? null, tool: first.name, calls: fresh.length, tag: `${sessionId}/${first.callId}` }
  }

  /** Nothing waits there; what begins to wait later is news. */
  forget(sessionId: string): void {
    this.seen.delete(sessionId)
  }
}

// Elects the tab that notifies, and knows if a person looks at any tab. Web locks end with their tab.

/** Two installations on one host have each their own. */
const TELLS = `sepal${basePath()}tells`
const IS_SEEN = `sepal${basePath()}is-seen`

/** Stands in line for telling; gives what leaves it. */
function standInLine(onFirst: () => void): () => void {
  const left = new AbortController()
  let leave = (): void => {}
  const held = new Promise<void>((resolve) => (leave = resolve))
  navigator.locks
    .request(TELLS, { signal: left.signal }, () => {
      onFirst()
      return held
    })
    .catch(() => {})
  return () => {
    left.abort()
    leave()
  }
}

/** Says to the other tabs while this one is in view; gives what ends it. */
function sayWhenSeen(): () => void {
  let hide: (() => void) | null = null
  function look(): void {
    const isSeen = document.visibilityState === 'visible'
    if (isSeen === (hide !== null)) return
    if (hide !== null) {
      hide()
      hide = null
      return
    }
    const hidden = new Promise<void>((resolve) => (hide = resolve))
    navigator.locks.request(IS_SEEN, { mode: 'shared' }, () => hidden).catch(() => {})
  }
  look()
  document.addEventListener('visibilitychange', look)
  return () => {
    document.removeEventListener('visibilitychange', look)
    hide?.()
  }
}

/** Never fails, because the answer may be needed later than it is asked for; a tab that cannot know it tells nothing. */
async function isAnySeen(): Promise<boolean> {
  if (document.visibilityState === 'visible') return true
  try {
    const { held } = await navigator.locks.query()
    return (held ?? []).some(({ name }) => name === IS_SEEN)
  } catch {
    return true
  }
}
