/** What a person chose last in the palette, the newest first. */
import { recall, remember } from '@/browser/storage'

const KEY = 'palette.recent'
const MOST = 6

export function recentIds(): string[] {
  try {
    const stored: unknown = JSON.parse(recall(KEY) ?? '[]')
    return Array.isArray(stored) ? stored.map(String).slice(0, MOST) : []
  } catch {
    return []
  }
}

export function noteRecent(id: string): void {
  remember(KEY, JSON.stringify([id, ...recentIds().filter((other) => other !== id)].slice(0, MOST)))
}
