/** The session that is about to be shared; by itself, so that the rest of it is loaded when it is. */
import { shallowRef } from 'vue'
import type { SessionItem } from '@/wire/restTypes'

export const toShare = shallowRef<SessionItem | null>(null)
