/** Sends a person's word about what a server asks, one at a time. */
import { ref } from 'vue'
import { t } from '@/locales'
import { reasonOf, request } from '@/wire/request'
import './texts.en.json'

export function useAnswer(sessionId: () => string, elicitationId: () => string) {
  const isBusy = ref(false)
  /** Why the last one was refused. */
  const problem = ref('')

  /** Whether it arrived. What arrived goes from the page when the session says so. */
  async function answer(action: 'open' | 'accept' | 'decline', content?: Record<string, unknown>): Promise<boolean> {
    if (isBusy.value) return false
    isBusy.value = true
    problem.value = ''
    const body = { elicitationId: elicitationId(), action, ...(content && { content }) }
    try {
      await request('post', '/api/sessions/{id}/elicitations', { path: { id: sessionId() }, body })
      // The page stays until all is done there.
      if (action === 'open') isBusy.value = false
      return true
    } catch (error) {
      problem.value = reasonOf(error) || t('elicitation.noAnswer')
      isBusy.value = false
      return false
    }
  }

  return { isBusy, problem, answer }
}
