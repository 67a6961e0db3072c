/**
 * The frame that draws a diagram. It is sandboxed without the page's origin, its response has a policy of its own that
 * allows no network, and it is `inert`: nothing in it takes the focus or a click. What it says is a size or a reason.
 */
import script from '@mermaid-js/tiny/dist/mermaid.tiny.js?url'
import { address } from '@/wire/base'

export interface Drawing {
  width: number
  height: number
}

/** The first one has to fetch the program that draws. */
const START_MS = 30_000
const DRAW_MS = 8_000
/** In CSS pixels; what is larger is drawn smaller. */
const MAX_WIDTH = 2_400
const MAX_HEIGHT = 1_600
const MAX_REASON = 300
/** A drawing that is wider than its place is made smaller, but never so small that it cannot be read: then it scrolls. */
const SMALLEST_SCALE = 0.6
/** What stands around the frame, in CSS pixels. */
const PADDING = 24

/** Opens a frame in that place, and says once what came of it; gives what closes it. */
export function openFrame(place: HTMLElement, source: string, tell: (answer: Drawing | { failed: string }) => void): () => void {
  const frame = document.createElement('iframe')
  frame.setAttribute('sandbox', 'allow-scripts')
  frame.setAttribute('referrerpolicy', 'no-referrer')
  frame.setAttribute('inert', '')
  frame.setAttribute('tabindex', '-1')
  frame.setAttribute('aria-hidden', 'true')
  frame.title = ''
  frame.className = 'md-frame'
  frame.src = `${address('diagram.html')}#${new URL(script, document.baseURI).href}`
  let timer = setTimeout(() => end({ failed: 'timeout' }), START_MS)

  function listen(event: MessageEvent): void {
    if (event.source !== frame.contentWindow || event.source === null) return
    const said: unknown = event.data
    if (said === 'ready') {
      clearTimeout(timer)
      timer = setTimeout(() => end({ failed: 'timeout' }), DRAW_MS)
      // A sandboxed frame has no origin that could be named.
      frame.contentWindow?.postMessage({ source, colours: colours() }, '*')
      return
    }
    const answer = read(said)
    if (answer !== null) end(answer)
  }

  function end(answer: Drawing | { failed: string }): void {
    clearTimeout(timer)
    removeEventListener('message', listen)
    if ('failed' in answer) frame.remove()
    else {
      const scale = Math.min(1, Math.max(SMALLEST_SCALE, (place.clientWidth - PADDING) / answer.width))
      frame.width = String(Math.floor(answer.width * scale))
      frame.height = String(Math.ceil(answer.height * scale))
    }
    tell(answer)
  }

  function close(): void {
    clearTimeout(timer)
    removeEventListener('message', listen)
    frame.remove()
  }

  addEventListener('message', listen)
  place.replaceChildren(frame)
  return close
}

/** What the frame said, or null: it is no more to be trusted than the text that it drew. */
export function read(said: unknown): Drawing | { failed: string } | null {
  if (typeof said !== 'object' || said === null) return null
  if ('failed' in said) return { failed: String(said.failed).replace(/\s+/g, ' ').slice(0, MAX_REASON) }
  if (!('width' in said) || !('height' in said)) return null
  const [width, height] = [Number(said.width), Number(said.height)]
  if (!(width > 0 && height > 0) || !Number.isFinite(width) || !Number.isFinite(height)) return null
  const scale = Math.min(1, MAX_WIDTH / width, MAX_HEIGHT / height)
  return { width: Math.ceil(width * scale), height: Math.ceil(height * scale) }
}

/** The page's own, as they are now; a drawing keeps those it was made with. */
function colours(): Record<string, string> {
  const style = getComputedStyle(document.documentElement)
  const own = (name: string) => style.getPropertyValue(name).trim()
  const isDark = document.documentElement.classList.contains('dark')
  return { scheme: isDark ? 'dark' : 'light', paper: own('--paper'), raised: own('--raised'), ink: hex(own('--ink')), quiet: hex(own('--ink-2')) }
}

/** The drawing program reads no `oklch`; a canvas does. */
function hex(colour: string): string {
  const context = document.createElement('canvas').getContext('2d')
  if (!context) return colour
  context.fillStyle = colour
  context.fillRect(0, 0, 1, 1)
  const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
