/** Whether the files of the open session are shown; by itself, so that the rest is loaded when they are. */
import { ref } from 'vue'

export const isFilesOpen = ref(false)
