/** Prints a session whole. The transcript holds only what is looked at, so the whole of it is opened as one document. */
import { printAddress } from '@/wire/upload'

export function printSession(id: string): void {
  const opened = window.open(printAddress(id), '_blank')
  // The browser keeps it from opening, and says so itself.
  opened?.addEventListener('load', () => opened.print(), { once: true })
}
