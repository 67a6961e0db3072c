/** Every tab says in its title and its icon how many calls wait for the person, whatever it shows. */
import { onBeforeUnmount, ref, watchEffect } from 'vue'
import { usePerson } from '@/stores/person'
import { useWaiting } from '@/stores/waiting'

const name = ref('')

/** What the tab shows, without what waits. */
export function nameTab(shown: string): void {
  name.value = shown
}

/** To be called once, for the whole page. */
export function showAttention(): void {
  const [person, all] = [usePerson(), useWaiting()]
  const stop = watchEffect(() => {
    const waiting = person.me ? all.calls : 0
    document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${name.value ? `${name.value} · ` : ''}Sepal`
    setIcon(waiting > 0 ? './icon-waiting.svg' : './icon.svg')
  })
  onBeforeUnmount(stop)
}

function setIcon(href: string): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]')
  if (link && link.getAttribute('href') !== href) link.setAttribute('href', href)
}
