/** A fresh gesture of the person, asked in a dialog over whatever they see. */
import { h, render } from 'vue'
import { i18n } from '@/locales'
import type { ShownCall } from './door'
import GestureDialog from './GestureDialog.vue'

/** What to send with the decision about these calls of one session, or null where the person did not confirm. Without calls it changes their own passkeys. */
export function giveGesture(calls: ShownCall[], onlyPasskey = false): Promise<string | null> {
  const host = document.createElement('div')
  document.body.append(host)
  return new Promise((resolve) => {
    const done = (gesture: string | null) => {
      render(null, host)
      host.remove()
      resolve(gesture)
    }
    const dialog = h(GestureDialog, { calls, onlyPasskey, onDone: done })
    host.lang = i18n.global.locale.value
    render(dialog, host)
  })
}
