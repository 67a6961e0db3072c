/** How a file is shown, by its name and its first bytes. */

export type Kind = 'image' | 'drawing' | 'page' | 'markdown' | 'table' | 'text' | 'binary' | 'empty'

const IMAGES = new Set(['png', 'jpg', 'jpeg', 'gif', 'webp', 'avif', 'bmp', 'ico'])
const PAGES = new Set(['html', 'htm', 'xhtml'])

export function extensionOf(name: string): string {
  const at = name.lastIndexOf('.')
  return at < 0 ? '' : name.slice(at + 1).toLowerCase()
}

export function isImage(name: string): boolean {
  return IMAGES.has(extensionOf(name))
}

/** Undefined where the bytes are no UTF-8 text. The last character may be cut. */
export function textOf(bytes: Uint8Array, isWhole: boolean): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !isWhole })
  } catch {
    return undefined
  }
}

export function kindOf(name: string, text: string | undefined): Kind {
  if (text === undefined) return 'binary'
  const extension = extensionOf(name)
  if (PAGES.has(extension)) return 'page'
  if (text === '') return 'empty'
  if (extension === 'svg') return 'drawing'
  if (extension === 'md' || extension === 'markdown') return 'markdown'
  return extension === 'csv' || extension === 'tsv' ? 'table' : 'text'
}

/** Sixteen bytes a line: where, in hex, and as letters. */
export function hexOf(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 16) {
    const part = [...bytes.subarray(at, at + 16)]
    const hex = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${letters}`)
  }
  return lines.join('\n')
}
