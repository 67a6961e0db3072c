/** A hidden tab says in its title and its icon that something waits. */
import { onBeforeUnmount, watchEffect } from 'vue'
import { t } from '@/locales'
import type { useSession } from './store'

export function showAttention(session: ReturnType<typeof useSession>): void {
  const stop = watchEffect(() => {
    const waiting = session.pending.length
    const title = session.conversation.title ?? t('session.untitled')
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${title} · Sepal`
    setIcon(waiting > 0 ? './icon-waiting.svg' : './icon.svg')
  })
  onBeforeUnmount(() => {
    stop()
    setIcon('./icon.svg')
  })
}

function setIcon(href: string): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
  if (link && link.getAttribute('href') !== href) link.setAttribute('href', href)
}
