/** Highlights away from the page's own thread: a long block costs no frame there, and one without end can be stopped. */
import { runsOf } from './grammars'
import type { Answer, Request } from './kinds'

function say(answer: Answer): void {
  self.postMessage(answer)
}

self.addEventListener('message', ({ data }: MessageEvent<Request>) => {
  try {
    say({ runs: runsOf(data) })
  } catch {
    say({ runs: null })
  }
})
say('ready')
