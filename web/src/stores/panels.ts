/** The panels that are open beside a page: flags alone, so that a panel itself is loaded when its flag is set. */
import { ref, shallowRef } from 'vue'
import type { SessionItem } from '@/wire/restTypes'

/** The search in the open session. */
export const isFindOpen = ref(false)
/** The files of the open session. */
export const isFilesOpen = ref(false)
/** What leads everywhere: sessions, actions, settings. */
export const isPaletteOpen = ref(false)
/** The list of all keys. */
export const isKeysOpen = ref(false)
/** The import of a conversation of another program. */
export const isImportOpen = ref(false)
/** The session whose sharing dialog is open. */
export const toShare = shallowRef<SessionItem | null>(null)
