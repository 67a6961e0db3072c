/** Files of tests share a process, so each begins with modules of its own and leaves nothing to the next. */
import { disableAutoUnmount } from '@vue/test-utils'
import { afterAll, vi } from 'vitest'

vi.resetModules()

afterAll(() => {
  disableAutoUnmount()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  vi.useRealTimers()
  if (typeof document === 'undefined') return
  localStorage.clear()
  sessionStorage.clear()
  document.head.innerHTML = ''
  document.body.innerHTML = ''
})
