/** Copies also over plain http, where the clipboard API is missing, by selecting the text. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'unseen'
  area.setAttribute('aria-hidden', 'true')
  document.body.append(area)
  area.select()
  // Deprecated, and the only way on an insecure address.
  const isDone = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isDone
}
