/**
 * A file that is dropped beside a field would replace the page by itself, and with it what was typed. Text that is
 * dropped into a field stays the browser's own work.
 */

type Taker = (files: File[]) => void

/** Whoever takes files now; the last one that asked. */
const takers: Taker[] = []

/** Gives files that are dropped or pasted anywhere in the page to `taker`, until the answer is called. */
export function takeFiles(taker: Taker): () => void {
  takers.push(taker)
  return () => void takers.splice(takers.indexOf(taker), 1)
}

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
    if (transfer) transfer.dropEffect = hasFiles && takers.length > 0 ? 'copy' : 'none'
  } else if (hasFiles) {
    give(transfer)
  }
}

/** A picture without text; what is copied from an office program brings both, and its text is pasted. */
function onPaste(event: Event): void {
  const pasted = (event as ClipboardEvent).clipboardData
  if (!pasted || !pasted.types.includes('Files') || pasted.types.includes('text/plain')) return
  event.preventDefault()
  give(pasted)
}

function give(transfer: DataTransfer): void {
  const files = [...transfer.files]
  if (files.length > 0) takers.at(-1)?.(files)
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, [contenteditable]')
}
