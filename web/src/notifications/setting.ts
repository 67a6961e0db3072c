/** Whether this browser tells of what begins to wait while no tab shows it. A choice of the browser, off at first. */
import { ref } from 'vue'
import { recall, remember } from '@/browser/storage'

/** `insecure`: browsers have notifications only on https and on this machine. `refused`: it asked, and showed none. */
export type NotificationState = 'unsupported' | 'insecure' | 'denied' | 'refused' | 'off' | 'on'

const KEY = 'notifications'

const isWanted = ref(recall(KEY) === 'on')
/** What the browser allows is no state of ours: it is looked at anew where it matters. */
const permission = ref<NotificationPermission | null>(null)
const isRefused = ref(false)

export function lookAtPermission(): void {
  permission.value = typeof Notification === 'function' ? Notification.permission : null
}

export function notificationState(): NotificationState {
  if (permission.value === null) lookAtPermission()
  if (!globalThis.isSecureContext) return 'insecure'
  // Without locks several tabs would tell the same.
  if (permission.value === null || !('locks' in navigator)) return 'unsupported'
  if (permission.value === 'denied') return 'denied'
  if (isRefused.value) return 'refused'
  return isWanted.value && permission.value === 'granted' ? 'on' : 'off'
}

/** Has to be asked by a click: browsers ignore it otherwise. */
export async function switchOn(): Promise<void> {
  isRefused.value = false
  permission.value = await Notification.requestPermission()
  isWanted.value = permission.value === 'granted'
  remember(KEY, isWanted.value ? 'on' : null)
}

export function switchOff(): void {
  isWanted.value = false
  remember(KEY, null)
}

/** The browser has notifications, and none from a page: phones, mostly. */
export function noteRefused(): void {
  isRefused.value = true
  switchOff()
}
