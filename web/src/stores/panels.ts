/** The panels that are open beside a page: flags alone, so that a panel itself is loaded when its flag is set. */
import { ref, shallowRef } from 'vue'
import type { SessionItem } from '@/wire/restTypes'

/** The search in the open session. */
export const isFindOpen = ref(false)
/** The tabs of the panel beside the open session. */
export const TABS = ['files', 'changes', 'context', 'rules', 'cost'] as const
export type PanelTab = (typeof TABS)[number]
/** The one that is open; null while the panel is closed. The page of the session keeps it in its address. */
export const openTab = ref<PanelTab | null>(null)

/** Opens the panel at a tab, or closes it there. */
export function toggleTab(tab: PanelTab): void {
  openTab.value = openTab.value === tab ? null : tab
}
/** What leads everywhere: sessions, actions, settings. */
export const isPaletteOpen = ref(false)
/** The list of all keys. */
export const isKeysOpen = ref(false)
/** The import of a conversation of another program. */
export const isImportOpen = ref(false)
/** The session whose sharing dialog is open. */
export const toShare = shallowRef<SessionItem | null>(null)
