/**
 * A file that is dropped beside a field would replace the page by itself, and with it what was typed. Text that is
 * dropped into a field stays the browser's own work.
 */
import { ref } from 'vue'

/** How often somebody dropped or pasted what cannot be taken; whoever is asked for files says so. */
export const refusedFiles = ref(0)

export function guardDrops(target: EventTarget = window): void {
  target.addEventListener('dragover', onDrag)
  target.addEventListener('drop', onDrag)
  target.addEventListener('paste', onPaste)
}

function onDrag(event: Event): void {
  const transfer = (event as DragEvent).dataTransfer
  const hasFiles = transfer?.types.includes('Files') === true
  if (!hasFiles && isField(event.target)) return
  event.preventDefault()
  if (event.type === 'dragover') {
    if (transfer) transfer.dropEffect = 'none'
  } else if (hasFiles) {
    refusedFiles.value += 1
  }
}

/** A picture without text; what is copied from an office program brings both, and its text is pasted. */
function onPaste(event: Event): void {
  const pasted = (event as ClipboardEvent).clipboardData
  if (!pasted || !pasted.types.includes('Files') || pasted.types.includes('text/plain')) return
  event.preventDefault()
  refusedFiles.value += 1
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, [contenteditable]')
}
