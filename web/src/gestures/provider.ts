/**
 * Confirms calls by a new sign-in at the person's OpenID provider, in a window of its own: the page with the calls stays
 * as it is. The window comes back to this page, makes the gesture, and tells it to the page by a channel of this origin.
 */
import { remember, STEP_UP } from '@/browser/storage'
import { request } from '@/wire/request'
import { reasonOf, type ShownCall } from './door'

/** The answer of the provider, as it stands in the address. */
export interface ProviderAnswer {
  state: string
  code?: string | undefined
  iss?: string | undefined
  error?: string | undefined
}

interface Told {
  state: string
  gesture?: string
  problem?: string
}

const CHANNEL = 'sepal.stepUp'

export const provider = {
  begin: (calls: ShownCall[]) => request('post', '/api/gestures/provider', { body: { calls } }),
  finish: (answer: ProviderAnswer) => request('post', '/api/gestures/provider/finish', { body: answer }),
}

/** The window could not be opened, or the provider's answer does not count. */
export class ProviderProblem extends Error {}

/** Has the person confirm; null where they gave up. Has to be called by a click, or browsers open no window. */
export async function confirmAtProvider(calls: ShownCall[], signal: AbortSignal): Promise<string | null> {
  const opened = window.open('', '_blank', 'popup,width=520,height=720')
  if (opened === null) throw new ProviderProblem('blocked')
  try {
    const { url } = await provider.begin(calls)
    const state = new URL(url).searchParams.get('state') ?? ''
    remember(STEP_UP, state)
    const answer = told(state, signal)
    opened.location.href = url
    return await answer
  } catch (error) {
    opened.close()
    throw error
  }
}

function told(state: string, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const channel = new BroadcastChannel(CHANNEL)
    channel.onmessage = ({ data }: MessageEvent<Told>) => {
      if (data.state !== state) return
      channel.close()
      if (data.gesture === undefined) reject(new ProviderProblem(data.problem))
      else resolve(data.gesture)
    }
    signal.addEventListener('abort', () => {
      channel.close()
      resolve(null)
    })
  })
}

/** Makes the gesture in the window that came back, and tells it to the page that waits. */
export async function finishConfirmation(answer: ProviderAnswer): Promise<boolean> {
  remember(STEP_UP, null)
  const channel = new BroadcastChannel(CHANNEL)
  const said: Told = { state: answer.state }
  try {
    const { gestures } = await provider.finish(answer)
    const gesture = gestures[0]?.gesture
    if (gesture !== undefined) said.gesture = gesture
  } catch (error) {
    said.problem = reasonOf(error)
  }
  channel.postMessage(said)
  channel.close()
  return said.gesture !== undefined
}
