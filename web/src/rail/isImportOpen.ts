/** Whether the import is open; by itself, so that the rest of it is loaded when it is. */
import { ref } from 'vue'

export const isImportOpen = ref(false)
