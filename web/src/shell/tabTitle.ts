/** Every tab says in its title and its icon how many calls wait for the person, whatever it shows. */
import { onBeforeUnmount, ref, watchEffect } from 'vue'
import { waitingIn } from '@/rail/rail'
import { usePerson } from '@/stores/person'
import { useSessions } from '@/stores/sessions'

const name = ref('')

/** What the tab shows, without what waits. */
export function nameTab(shown: string): void {
  name.value = shown
}

/** To be called once, for the whole page. */
export function showAttention(): void {
  const [person, sessions] = [usePerson(), useSessions()]
  const stop = watchEffect(() => {
    const waiting = person.me ? waitingIn(sessions.shown).count : 0
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${name.value ? `${name.value} · ` : ''}Sepal`
    setIcon(waiting > 0 ? './icon-waiting.svg' : './icon.svg')
  })
  onBeforeUnmount(stop)
}

function setIcon(href: string): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
  if (link && link.getAttribute('href') !== href) link.setAttribute('href', href)
}
