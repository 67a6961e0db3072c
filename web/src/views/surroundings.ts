/** What a view is told of the page around it, and of its call. */
import { nextTick, ref } from 'vue'
import type { CallView, JsonObject } from '@/wire/types'

/** In CSS pixels. A view that wants more scrolls in itself. */
export const MAX_HEIGHT = 640
export const MIN_HEIGHT = 48

/** Colours and faces of the page, by the names that the extension gives them. */
const STYLES: readonly (readonly [string, string])[] = [
  ['--color-background-primary', '--paper'],
  ['--color-background-secondary', '--raised'],
  ['--color-text-primary', '--ink'],
  ['--color-text-secondary', '--ink-2'],
  ['--color-border-primary', '--line'],
  ['--color-border-secondary', '--control'],
  ['--color-text-danger', '--refused'],
  ['--color-text-success', '--open'],
  ['--font-sans', '--font-sans'],
  ['--font-mono', '--font-mono'],
]

export function isDark(): boolean {
  return document.documentElement.classList.contains('dark')
}

/** What changes with the theme. */
export function themeContext(): JsonObject {
  const style = getComputedStyle(document.documentElement)
  const variables = Object.fromEntries(STYLES.map(([name, own]) => [name, style.getPropertyValue(own).trim()]))
  return { theme: isDark() ? 'dark' : 'light', styles: { variables } }
}

/** In the column, or over the whole page. */
export type DisplayMode = 'inline' | 'fullscreen'

/** The place of a view, in CSS pixels. */
export interface Room {
  mode: DisplayMode
  width: number
  height: number
}

/** What changes with the room. In the column the view chooses its height. */
export function roomContext({ mode, width, height }: Room): JsonObject {
  return { displayMode: mode, containerDimensions: mode === 'inline' ? { width, maxHeight: MAX_HEIGHT } : { width, height } }
}

export function contextOf(call: CallView, room: Room): JsonObject {
  return {
    ...themeContext(),
    ...roomContext(room),
    availableDisplayModes: ['inline', 'fullscreen'],
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    platform: 'web',
    userAgent: 'sepal',
    deviceCapabilities: { touch: matchMedia('(any-pointer: coarse)').matches, hover: matchMedia('(any-hover: hover)').matches },
    toolInfo: { id: call.callId, tool: { name: call.name, inputSchema: { type: 'object' } } },
  }
}

/** What came of a call that a view asked for (`CallToolResult`): also what was not allowed is a result that says so. */
export function resultOf(call: CallView): JsonObject {
  const ending = endingOf(call)
  if (ending?.method === 'ui/notifications/tool-result') return ending.params
  return { content: [{ type: 'text', text: call.output || call.status }], isError: true }
}

/** How a call ended, as the view is told; null while it runs. */
export function endingOf(call: CallView): { method: string; params: JsonObject } | null {
  const { status, output = '', structured } = call
  if (status === 'completed' || (status === 'failed' && call.durationMs !== undefined)) {
    return {
      method: 'ui/notifications/tool-result',
      params: { content: contentOf(call, output), ...(structured === undefined ? {} : { structuredContent: structured }), isError: status === 'failed' },
    }
  }
  const isOver = status === 'cancelled' || status === 'rejected' || status === 'unknown' || status === 'failed'
  return isOver ? { method: 'ui/notifications/tool-cancelled', params: { reason: output || status } } : null
}

/** Texts and links as they came; of files, the name. */
function contentOf({ blocks }: CallView, output: string): JsonObject[] {
  const told = (blocks ?? []).flatMap((block): JsonObject[] => {
    if (block.type === 'text') return [{ type: 'text', text: block.text }]
    if (block.type === 'resource') return [{ type: 'resource', resource: { uri: block.uri, ...(block.mimeType ? { mimeType: block.mimeType } : {}), text: block.text } }]
    if (block.type === 'resource_link') return [{ type: 'resource_link', uri: block.uri, name: block.name }]
    return []
  })
  return told.length > 0 ? told : [{ type: 'text', text: output }]
}

// The place of a view: in the column, or over the whole page. A view that fills the page could look like the page
// itself, so it does that only by the act of a person, and the page's own line stays above it.

export function useDisplayMode(frame: () => HTMLElement | null, changed: () => void) {
  const mode = ref<DisplayMode>('inline')
  /** Whether the view can fill the page, by its own word. */
  const mayFill = ref(false)

  function declare(modes: unknown): void {
    mayFill.value = Array.isArray(modes) && modes.includes('fullscreen')
  }

  async function show(wanted: DisplayMode): Promise<void> {
    if (mode.value === wanted) return
    mode.value = wanted
    await nextTick()
    changed()
  }

  /** What the view wants; the answer is what it gets. It may always go back. */
  async function display(wanted: unknown): Promise<DisplayMode> {
    if (wanted === 'inline') await show('inline')
    else if (wanted === 'fullscreen' && mayFill.value && isUsed()) await show('fullscreen')
    return mode.value
  }

  /** Whether the person is in the view, and has just pressed something: a view can take the focus by itself, but not that. */
  function isUsed(): boolean {
    const { userActivation } = navigator as { userActivation?: { isActive: boolean } }
    return document.activeElement === frame() && userActivation?.isActive !== false
  }

  return { mode, mayFill, declare, display, show }
}
