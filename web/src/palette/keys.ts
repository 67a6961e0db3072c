/** Every key of the page, by where it works: the settings and `?` list them. `$mod` is ⌘ on a Mac, else Ctrl. */
import type { SendKey } from '@/stores/appearance'

export interface KeyGroup {
  id: 'everywhere' | 'session' | 'card' | 'lists'
  /** The keys with the name of what they do, below `keys.of`. */
  keys: readonly (readonly [keys: string, name: string])[]
}

/** `sends`: the key that a person chose to send with. */
export const keysFor = (sends: SendKey): readonly KeyGroup[] => [
  {
    id: 'everywhere',
    keys: [
      ['$mod K', 'palette'],
      ['?', 'list'],
      ['Alt ↑', 'tray'],
      ['Esc', 'close'],
    ],
  },
  {
    id: 'session',
    keys: [
      [sends === 'enter' ? 'Enter' : '$mod Enter', 'send'],
      [sends === 'enter' ? 'Shift Enter' : 'Enter', 'line'],
      ['Esc Esc', 'stop'],
      ['/', 'prompts'],
      ['@', 'resources'],
      ['Tab', 'take'],
      ['$mod Enter', 'ask'],
      ['$mod F', 'find'],
      ['Enter', 'hitAfter'],
      ['Shift Enter', 'hitBefore'],
      ['$mod P', 'print'],
    ],
  },
  {
    id: 'card',
    keys: [
      ['A', 'approve'],
      ['R', 'reject'],
      ['E', 'edit'],
      ['S', 'stopAsking'],
      ['D', 'whole'],
      ['↑ ↓', 'next'],
      ['Shift A', 'approveAll'],
      ['Shift R', 'rejectAll'],
      ['Esc', 'leave'],
    ],
  },
  {
    id: 'lists',
    keys: [
      ['↑ ↓', 'move'],
      ['Home End', 'ends'],
      ['← →', 'fold'],
      ['← →', 'tabs'],
      ['Enter', 'open'],
      ['A … Z', 'lead'],
    ],
  },
]

const MODIFIER = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘' : 'Ctrl'

/** `$mod K` as the keyboard in front of the person says it: `Ctrl`, `K`. */
export function partsOf(keys: string): string[] {
  return keys.split(' ').map((part) => (part === '$mod' ? MODIFIER : part))
}
