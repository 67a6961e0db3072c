/** Sends a person's word about what a server wants a model to be asked, one at a time. */
import { ref } from 'vue'
import { t } from '@/locales'
import { reasonOf, request } from '@/wire/request'
import type { SamplingItem } from '@/wire/types'
import './texts.en.json'

export function useDecision(sessionId: () => string, asked: () => SamplingItem) {
  const isBusy = ref(false)
  /** Why the last one was refused. */
  const problem = ref('')

  async function send(word: { action: 'accept' | 'decline'; digest?: string; review?: boolean }): Promise<void> {
    if (isBusy.value) return
    isBusy.value = true
    problem.value = ''
    const body = { elicitationId: asked().elicitationId, ...word }
    try {
      await request('post', '/api/sessions/{id}/elicitations', { path: { id: sessionId() }, body })
    } catch (error) {
      problem.value = reasonOf(error) || t('sampling.noAnswer')
    }
    isBusy.value = false
  }

  /** A yes is about what is shown now. */
  const accept = (review?: boolean) => send({ action: 'accept', digest: asked().digest ?? '', ...(review !== undefined && { review }) })
  const decline = () => send({ action: 'decline' })
  return { isBusy, problem, accept, decline }
}
