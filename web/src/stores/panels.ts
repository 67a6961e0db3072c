/** Whether the open session is looked through; by itself, so that the rest is loaded when it is. */
import { ref } from 'vue'

export const isFindOpen = ref(false)
